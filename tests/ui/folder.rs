netkit::model!(Digits = "models");

fn main() {}
