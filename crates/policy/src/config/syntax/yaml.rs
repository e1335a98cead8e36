//! From YAML (of which JSON is a subset) to a tree, within bounds.
//!
//! Anchors, aliases, tags and further documents are refused: a limiter's configuration needs none
//! of them, and each is a way to make a small file mean something large or surprising.

use super::tree::Tree;
use super::{Node, Place};
use crate::config::fault::Fault;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

/// The largest file, in bytes.
const SIZE_MAX: usize = 4 << 20;

/// How deeply lists and maps may nest: far more than the language ever needs.
const DEPTH_MAX: usize = 64;

/// What a text holds, and what is wrong with it: `nothing`, if it says nothing at all. The tree is
/// absent where the text cannot be read to its end.
pub(crate) fn read(text: &str, nothing: Fault) -> (Option<Node>, Vec<(Place, Fault)>) {
    read_up_to(text, nothing, SIZE_MAX)
}

/// The same for a text of up to `most` bytes.
pub(crate) fn read_up_to(
    text: &str,
    nothing: Fault,
    most: usize,
) -> (Option<Node>, Vec<(Place, Fault)>) {
    if text.len() > most {
        let size = most >> 20;
        let fault = Fault::new(format!("the file is larger than {size} MiB")).help("split it");
        return (None, vec![(START, fault)]);
    }
    let mut faults = Vec::new();
    match grow(text, &mut faults) {
        Ok(Some(node)) => (Some(node), faults),
        Ok(None) => (None, vec![(START, nothing)]),
        Err(fatal) => {
            faults.push(fatal);
            (None, faults)
        }
    }
}

const START: Place = Place::File {
    line: 1,
    column: 1,
    width: 1,
};

type Faults = Vec<(Place, Fault)>;

fn grow(text: &str, faults: &mut Faults) -> Result<Option<Node>, (Place, Fault)> {
    let mut tree = Tree::default();
    let mut documents = 0;
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| syntax_error(&error))?;
        let place = place(&span);
        refuse_extras(&event, place, faults);
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    let fault = Fault::new("a second document begins here")
                        .help("a configuration is one document; remove the `---`");
                    return Err((place, fault));
                }
            }
            Event::Scalar(text, style, ..) => {
                let plain = style == ScalarStyle::Plain;
                tree.scalar(text.into_owned(), plain, place, faults);
            }
            Event::Alias(_) => tree.broken(place),
            Event::SequenceStart(..) | Event::MappingStart(..) if tree.depth() >= DEPTH_MAX => {
                let fault = Fault::new(format!("nested more than {DEPTH_MAX} levels deep"));
                return Err((place, fault));
            }
            Event::SequenceStart(..) => tree.begin_list(place, faults),
            Event::MappingStart(..) => tree.begin_map(place, faults),
            Event::SequenceEnd | Event::MappingEnd => tree.end(),
            Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
        }
    }
    Ok(tree.into_root())
}

/// Reports what YAML has and we refuse.
fn refuse_extras(event: &Event<'_>, place: Place, faults: &mut Faults) {
    let (anchor, tag) = match event {
        Event::Scalar(_, _, anchor, tag)
        | Event::SequenceStart(anchor, tag)
        | Event::MappingStart(anchor, tag) => (*anchor, tag.as_ref()),
        Event::Alias(_) => (1, None),
        _ => return,
    };
    if anchor > 0 {
        let fault = Fault::new("anchors (`&name`) and aliases (`*name`) are not supported")
            .help("write the value out, or put quotes around it if the `&` or `*` is part of it");
        faults.push((place, fault));
    }
    if let Some(tag) = tag {
        let name = if tag.is_yaml_core_schema() {
            format!("!!{}", tag.suffix)
        } else {
            tag.to_string()
        };
        let fault = Fault::new(format!("tags ({}) are not supported", Fault::quote(&name)))
            .help("remove the tag, or put quotes around the value if the `!` is part of it");
        faults.push((place, fault));
    }
}

fn syntax_error(error: &ScanError) -> (Place, Fault) {
    let info = error.info();
    let fault = Fault::new(format!("this is not valid YAML or JSON: {info}"));
    let fault = if info.contains("anchor") {
        // The usual cause by far is `host: *.example.com`.
        Fault::new("a value that begins with `*` or `&` means something else in YAML")
            .help("put quotes around it, for example \"*.example.com\"")
    } else if info.contains("tab") {
        fault.help("indent with spaces; YAML does not allow tabs there")
    } else if info.contains("mapping values") {
        fault.help("check the indentation, or put quotes around a value that contains `: `")
    } else if info.contains("','") || info.contains("placement of ':'") {
        fault.help(
            "a list is written [a, b] and a map { a: b, c: d }; is a bracket or brace missing?",
        )
    } else {
        fault.help("check the indentation and the quotes, here and just above")
    };
    (place(&Span::empty(*error.marker())), fault)
}

fn place(span: &Span) -> Place {
    let same_line = span.start.line() == span.end.line();
    let width = span.end.col().saturating_sub(span.start.col());
    Place::File {
        line: span.start.line().max(1),
        column: span.start.col().saturating_add(1),
        width: if same_line { width.max(1) } else { 1 },
    }
}
