//! Where the instructions of a region are spent.

use crate::counter::Executed;
use crate::image::Image;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The functions of `image` that took part in the region numbered `index`, dearest first.
pub(crate) fn table(region: &str, index: usize, executed: &[Executed], image: &Image) -> String {
    let mut functions: Vec<_> = image.functions.iter().filter(|f| f.size > 0).collect();
    functions.sort_by_key(|function| function.address);
    let mut spent: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in executed.iter().filter(|entry| entry.region == index) {
        let after = functions.partition_point(|function| function.address <= entry.address);
        let function = after.checked_sub(1).and_then(|index| functions.get(index));
        let covers = function.filter(|f| entry.address < f.address + f.size);
        *spent.entry(covers.map_or("elsewhere", |f| f.name.as_str())).or_default() += entry.count;
    }
    let mut spent: Vec<_> = spent.into_iter().collect();
    spent.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let mut text = format!("\n    profile of {region}");
    for (name, count) in spent.iter().take(12) {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n    {count:>12}  {name}");
    }
    text
}
