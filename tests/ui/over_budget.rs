netkit::model!(Small = "models/small.nk");

const _: () = assert!(Small::ARENA_BYTES <= 16, "the arena must fit 16 bytes");

fn main() {}
