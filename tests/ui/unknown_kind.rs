netkit::model!(Digits = "broken/NK0201.nk");

fn main() {}
