netkit::model!(Digits = "models/non_finite.nk");

fn main() {}
