//! The procedural macro behind `netkit::model!`.
#![forbid(unsafe_code)]
