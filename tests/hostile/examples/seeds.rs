//! Writes the seeds of every target, and what earlier runs found, to `FOLDER/TARGET/`: the corpora that the fuzzer starts from.

use netkit_hostile::found;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "fuzz/corpus".into()));
    for target in netkit_hostile::TARGETS {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (index, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{index}")), seed)?;
        }
        let found = std::fs::read(found::file(target.name))?;
        let found = found::unpack(&found).ok_or(std::io::ErrorKind::InvalidData)?;
        for (index, input) in found.iter().enumerate() {
            std::fs::write(folder.join(format!("found-{index}")), input)?;
        }
    }
    Ok(())
}
