netkit::model!(Posix = "/models/small.nk");
netkit::model!(Windows = r"C:\models\small.nk");

fn main() {}
