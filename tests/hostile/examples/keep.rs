//! Packs the inputs of `FOLDER/TARGET/`, a minimised corpus of each target, into the files that the tests replay. Targets
//! without a folder keep theirs.

use netkit_hostile::found;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "fuzz/corpus".into()));
    for target in netkit_hostile::TARGETS {
        let Ok(entries) = std::fs::read_dir(folder.join(target.name)) else { continue };
        let mut inputs =
            entries.map(|entry| std::fs::read(entry?.path())).collect::<Result<Vec<_>, _>>()?;
        // By content: names are hashes, and the file should not change with the order of a folder.
        inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        inputs.dedup();
        let packed = found::pack(&inputs);
        println!("{}: {} inputs, {} bytes", target.name, inputs.len(), packed.len());
        std::fs::write(found::file(target.name), packed)?;
    }
    Ok(())
}
