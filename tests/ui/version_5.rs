netkit::model!(Digits = "broken/NK0104.nk");

fn main() {}
