//! What can only be said once the network's input and output are known: whether its test cases fit.

use core::ops::ControlFlow;

use crate::diag::{Code, Diagnostic, Sink, Value as Say};
use crate::format::NkFile;
use crate::graph::Graph;

/// Checks the embedded test cases against the graph (S-TCAS-SIZE, S-TCAS-LABEL); whether they hold, not
/// whether they pass.
pub(crate) fn cases(file: &NkFile<'_>, graph: &Graph<'_>, sink: &mut dyn Sink) -> bool {
    let elements = |ids: &[crate::graph::ValueId]| -> u64 {
        ids.iter().map(|&id| graph.value(id).shape.elements() as u64).sum()
    };
    let (inputs, outputs) = (elements(graph.inputs()), elements(graph.outputs()));
    let mut clean = true;
    for case in file.cases() {
        let counts = [
            ("inputs", case.input.len() as u64, inputs, case.input_offset),
            ("outputs", case.expected.len() as u64, outputs, case.expected_offset),
        ];
        for (field, found, expected, offset) in counts {
            if found != expected {
                clean = false;
                let diagnostic = Diagnostic::new(Code::CaseSize, case.site().at(offset))
                    .field(field)
                    .found(Say::integer(found))
                    .expected(Say::integer(expected));
                if sink.report(diagnostic) == ControlFlow::Break(()) {
                    return false;
                }
            }
        }
        if let Some(label) = case.label
            && u64::from(label) >= outputs
        {
            clean = false;
            let diagnostic = Diagnostic::new(Code::CaseLabel, case.site().at(case.label_offset))
                .field("label")
                .found(Say::Integer(label.into()))
                .expected(Say::Between(-1, outputs as i64 - 1));
            if sink.report(diagnostic) == ControlFlow::Break(()) {
                return false;
            }
        }
    }
    clean
}
