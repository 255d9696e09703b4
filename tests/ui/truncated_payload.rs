netkit::model!(Digits = "models/truncated.nk");

fn main() {}
