netkit::model!(Home = "$HOME/small.nk");
netkit::model!(NoBuildScript = "$OUT_DIR/small.nk");

fn main() {}
