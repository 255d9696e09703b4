//! Reading files whose length somebody else chose.

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::Read as _;
use std::path::Path;

use crate::size;

/// Reads a file of at most `limit` bytes; `what` says what that limit is of. A longer one is refused, as is a device
/// that never ends, before it fills the memory.
pub(crate) fn read(path: &Path, limit: u64, what: &str) -> Result<Vec<u8>> {
    let failed = || format!("cannot read {}", path.display());
    if path.is_dir() {
        bail!("{} is a folder", path.display());
    }
    let file = fs::File::open(path).with_context(failed)?;
    let length = file.metadata().with_context(failed)?.len();
    let mut bytes = Vec::new();
    if length <= limit {
        file.take(limit + 1).read_to_end(&mut bytes).with_context(failed)?;
    }
    if length > limit || bytes.len() as u64 > limit {
        bail!(
            "{} is longer than {}, the most that is read of {what}",
            path.display(),
            size::bytes(limit as usize)
        );
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::read;
    use std::path::Path;

    #[cfg(unix)]
    #[test]
    fn what_never_ends_is_refused() {
        let error = read(Path::new("/dev/zero"), 1 << 16, "a test").unwrap_err().to_string();
        assert!(error.contains("65,536 bytes") && error.contains("of a test"), "{error}");
    }

    #[test]
    fn the_limit_itself_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let length = std::fs::metadata(&path).unwrap().len();
        assert_eq!(read(&path, length, "a test").unwrap().len() as u64, length);
        assert!(read(&path, length - 1, "a test").is_err());
    }
}
