netkit::model!(Digits = "broken/NK0310.nk");

fn main() {}
