//! Tables for a terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use netkit_core::program::Step;

/// A table without borders: the first column to the left, numbers to the right.
pub(crate) fn plain(header: &[&str]) -> Table {
    finish(Table::new().load_preset(presets::NOTHING), header)
}

/// A table in a box.
pub(crate) fn boxed(header: &[&str]) -> Table {
    finish(Table::new().load_preset(presets::UTF8_BORDERS_ONLY), header)
}

fn finish(table: &mut Table, header: &[&str]) -> Table {
    // Wide tables are for reading and for scripts: no wrapping at a terminal's edge.
    table.set_content_arrangement(ContentArrangement::Disabled);
    if !header.is_empty() {
        table.set_header(header);
    }
    std::mem::take(table)
}

/// Aligns columns to the right.
pub(crate) fn right(table: &mut Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// `3 conv2d`, or `3 conv2d (expand)` for a part of a fused layer.
pub(crate) fn step_name(step: &Step<'_, '_>) -> String {
    let (layer, name, part) = (step.node.layer, step.node.op.name(), step.node.part);
    if part.is_empty() || part == name {
        format!("{layer} {name}")
    } else {
        format!("{layer} {name} ({part})")
    }
}
