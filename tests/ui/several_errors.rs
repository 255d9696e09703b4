// Everything that is wrong with a file is reported at once, and with both files.
netkit::model!(First = "models/several.nk");
netkit::model!(Second = "models/empty.nk");

fn main() {}
