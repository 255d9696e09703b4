//! What stands between a source model and a netkit model, told in the source's own names.

use std::fmt::{self, Write as _};
use std::sync::Arc;

/// The node of the source model that something comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The node's name; for a nameless one, its position and what it produces.
    pub node: String,
    /// The operator, as the source calls it.
    pub operator: String,
    /// Name and, where known, shape of each input that is given.
    pub inputs: Vec<(String, Option<Vec<usize>>)>,
    /// Name and, where known, shape of each output.
    pub outputs: Vec<(String, Option<Vec<usize>>)>,
}

/// One reason why a model cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Obstacle {
    /// Where; `None` for the model as a whole.
    pub origin: Option<Arc<Origin>>,
    /// What is wrong.
    pub reason: String,
    /// What would help, if anything is known to.
    pub help: Option<String>,
}

/// Every obstacle found in one model: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacles(Vec<Obstacle>);

/// Why one node cannot be converted: an [`Obstacle`] before its place is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    reason: String,
    help: Option<String>,
}

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn into_reason(self) -> String {
        self.reason
    }

    pub(crate) fn at(self, origin: &Arc<Origin>) -> Obstacle {
        Obstacle { origin: Some(origin.clone()), reason: self.reason, help: self.help }
    }

    pub(crate) fn in_model(self) -> Obstacle {
        Obstacle { origin: None, reason: self.reason, help: self.help }
    }
}

impl From<Obstacle> for Obstacles {
    fn from(obstacle: Obstacle) -> Self {
        Self(vec![obstacle])
    }
}

impl Obstacles {
    /// `None` for an empty list: there is no failure without a reason.
    pub(crate) fn new(list: Vec<Obstacle>) -> Option<Self> {
        (!list.is_empty()).then_some(Self(list))
    }

    /// The obstacles, at least one.
    #[must_use]
    pub fn as_slice(&self) -> &[Obstacle] {
        &self.0
    }
}

/// Writes `1×8×28×28`, or `scalar`.
pub(crate) fn shape_text(dims: &[usize]) -> String {
    if dims.is_empty() {
        return "scalar".to_owned();
    }
    dims.iter().map(ToString::to_string).collect::<Vec<_>>().join("×")
}

/// Text with the source's names in it, on one line: a line end in a name would make a line that says what nobody said.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

fn ports(ports: &[(String, Option<Vec<usize>>)]) -> String {
    let text = |(name, dims): &(String, Option<Vec<usize>>)| match dims {
        Some(dims) => format!("`{name}` {}", shape_text(dims)),
        None => format!("`{name}` of unknown shape"),
    };
    ports.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Writes ``Conv `conv1` ``.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", OneLine(&self.operator), OneLine(&self.node))
    }
}

/// Writes where, why, the shapes involved and the help, each on its own line after the first.
impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        OneLine(&self.reason).fmt(f)?;
        if let Some(origin) = &self.origin {
            let (inputs, outputs) = (ports(&origin.inputs), ports(&origin.outputs));
            let from = if inputs.is_empty() { "" } else { "from " };
            write!(f, "\n  {from}{} to {}", OneLine(&inputs), OneLine(&outputs))?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {}", OneLine(help))?;
        }
        Ok(())
    }
}

/// Writes the obstacles one after the other.
impl fmt::Display for Obstacles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, obstacle) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{obstacle}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Obstacles {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_obstacle_names_node_operator_shapes_and_help() {
        let origin = Arc::new(Origin {
            node: "up1".into(),
            operator: "Resize".into(),
            inputs: vec![("x".into(), Some(vec![1, 8, 4, 4])), ("scales".into(), None)],
            outputs: vec![("y".into(), Some(vec![1, 8, 8, 8]))],
        });
        let obstacle = Refusal::new("not supported").help("remove it").at(&origin);
        assert_eq!(
            obstacle.to_string(),
            "Resize `up1`: not supported\n  from `x` 1×8×4×4, `scales` of unknown shape \
             to `y` 1×8×8×8\n  help: remove it"
        );
        let origin = Arc::new(Origin {
            node: "a\nerror: all is well".into(),
            operator: "No\x1b[2J".into(),
            ..Origin::default()
        });
        assert_eq!(
            Refusal::new("it reads `x\ry`").at(&origin).to_string(),
            "No\\u{1b}[2J `a\\nerror: all is well`: it reads `x\\ry`\n   to "
        );
        assert_eq!(Refusal::new("no input").in_model().to_string(), "no input");
        assert_eq!(Obstacles::new(Vec::new()), None);
    }
}
