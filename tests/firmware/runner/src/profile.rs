//! Where the instructions of a region are spent.

use crate::counter::Executed;
use crate::image::Image;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The functions of `image` that took part in the region numbered `index`, dearest first.
pub(crate) fn table(region: &str, index: usize, executed: &[Executed], image: &Image) -> String {
    let mut spent: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in executed.iter().filter(|entry| entry.region == index) {
        let function = image.function_at(entry.address).unwrap_or("elsewhere");
        *spent.entry(function).or_default() += entry.count;
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
