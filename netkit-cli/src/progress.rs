//! Progress of long work, on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `count` things; hidden where standard error is no terminal.
pub(crate) fn bar(count: u64, things: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(count);
    let template = "{msg} {wide_bar} {pos}/{len} {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(things);
    bar
}
