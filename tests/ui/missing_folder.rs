netkit::model!(Digits = "nets/small.nk");

fn main() {}
