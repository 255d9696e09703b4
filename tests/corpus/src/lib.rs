//! Every model file at hand through `netkit::model!`: see `tests/golden.rs`.
