//! A translation beside a configuration of one's own.

use crate::config::{
    Config, ConfigErrors, Entry, Environment, Fault, Kind, Node, Reader, read_syntax,
};

/// A configuration as text, and what messages call it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// What messages call it.
    pub name: &'a str,
    /// What it says.
    pub text: &'a str,
}

impl Config {
    /// Reads a configuration as [`parse`](Self::parse) does, with the policies of another after its
    /// own, of which it may have none: `policies`, such as
    /// [`Imported::to_yaml`](crate::import::Imported::to_yaml) writes. Of that text nothing else is
    /// taken.
    pub fn parse_with_policies(
        own: Named<'_>,
        policies: Named<'_>,
        environment: &dyn Environment,
    ) -> Result<Self, ConfigErrors> {
        // No text has more lines than bytes.
        let below = own.text.len().saturating_add(1);
        let mut reader = Reader::new(own.name, own.text, environment);
        let (more, faults) = read_syntax(policies.text, Fault::new("there are no policies here"));
        if !faults.is_empty() {
            return Self::parse(policies.text, policies.name, environment);
        }
        let (tree, faults) = read_syntax(own.text, Fault::new("the file says nothing"));
        for (place, fault) in faults {
            reader.error((place, String::new()), fault);
        }
        reader.go_on_below(below, policies.name, policies.text);
        let tree = tree.map(|mut tree| {
            if let Some(more) = more {
                add(&mut tree, more, below);
            }
            tree
        });
        Self::from_tree(reader, tree, environment)
    }
}

/// Adds the policies of `more` to those of `tree`.
fn add(tree: &mut Node, more: Node, below: usize) {
    let Kind::Map(sections) = more.kind else {
        return;
    };
    let Some(mut policies) = sections.into_iter().find(|it| it.key.text == "policies") else {
        return;
    };
    lower(&mut policies.value, below);
    policies.key.place = policies.key.place.lower(below);
    // What is not a map is refused when it is read.
    let Kind::Map(own) = &mut tree.kind else {
        return;
    };
    let written = own.iter_mut().find(|it| it.key.text == "policies");
    match (written, policies) {
        (None, policies) => own.push(policies),
        (Some(own), policies) => match (&mut own.value.kind, policies.value.kind) {
            (Kind::List(own), Kind::List(more)) => own.extend(more),
            (Kind::Null, more) => own.value.kind = more,
            _ => {}
        },
    }
}

/// Moves a node and all that it holds down by so many lines.
fn lower(node: &mut Node, by: usize) {
    node.place = node.place.lower(by);
    match &mut node.kind {
        Kind::List(items) => items.iter_mut().for_each(|item| lower(item, by)),
        Kind::Map(entries) => {
            for Entry { key, value } in entries {
                key.place = key.place.lower(by);
                lower(value, by);
            }
        }
        Kind::Text(_) | Kind::Null | Kind::Broken => {}
    }
}
