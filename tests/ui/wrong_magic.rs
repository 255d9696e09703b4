netkit::model!(Digits = "broken/NK0102.nk");

fn main() {}
