//! Importers into netkit models.
#![forbid(unsafe_code)]
