//! Code generation behind `netkit::model!`.
#![forbid(unsafe_code)]
