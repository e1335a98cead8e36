//! Parses YAML (of which JSON is a subset) into a tree, within bounds.
//!
//! Aliases and merge keys are replaced by the values that they refer to. Tags and further documents are
//! errors: a limiter's configuration needs neither.

use super::tree::TreeBuilder;
use super::{TextSpan, YamlNode};
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};
use tidegate_policy::text::ConfigFault;

/// The largest file, in bytes.
const SIZE_MAX: usize = 4 << 20;

/// Returns the tree of a text, and its faults. `nothing` is the fault of an empty text. The tree is
/// `None` if the text cannot be parsed to its end.
pub fn read(text: &str, nothing: ConfigFault) -> (Option<YamlNode>, Vec<(TextSpan, ConfigFault)>) {
    read_up_to(text, nothing, SIZE_MAX)
}

/// Does the same as [`read`] for a text of up to `most` bytes.
pub(crate) fn read_up_to(
    text: &str,
    nothing: ConfigFault,
    most: usize,
) -> (Option<YamlNode>, Vec<(TextSpan, ConfigFault)>) {
    if text.len() > most {
        let size = most >> 20;
        let fault =
            ConfigFault::new(format!("the file is larger than {size} MiB")).help("split it");
        return (None, vec![(START, fault)]);
    }
    let mut tree = TreeBuilder::default();
    let fatal = grow(text, &mut tree).err();
    let (root, mut faults) = tree.finish();
    match (root, fatal) {
        (_, Some(fatal)) => {
            faults.push(fatal);
            (None, faults)
        }
        (None, None) => (None, vec![(START, nothing)]),
        (Some(root), None) => (Some(root), faults),
    }
}

const START: TextSpan = TextSpan::at(1, 1, 1);

fn grow(text: &str, tree: &mut TreeBuilder) -> Result<(), (TextSpan, ConfigFault)> {
    let mut documents = 0;
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| syntax_error(&error))?;
        let place = place(&span);
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    let fault = ConfigFault::new("a second document starts here")
                        .help("a configuration is one document; remove the `---`");
                    return Err((place, fault));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.as_deref(), place, tree);
                let plain = style == ScalarStyle::Plain;
                tree.scalar(text.into_owned(), plain, anchor, place)?;
            }
            Event::Alias(anchor) => tree.alias(anchor, place)?,
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), place, tree);
                tree.begin_list(anchor, place)?;
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), place, tree);
                tree.begin_map(anchor, place)?;
            }
            Event::SequenceEnd | Event::MappingEnd => tree.end()?,
            Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
        }
    }
    Ok(())
}

fn refuse_tag(tag: Option<&Tag>, place: TextSpan, tree: &mut TreeBuilder) {
    let Some(tag) = tag else {
        return;
    };
    let name = if tag.is_yaml_core_schema() {
        format!("!!{}", tag.suffix)
    } else {
        tag.to_string()
    };
    let fault = ConfigFault::new(format!(
        "tags ({}) are not supported",
        ConfigFault::quote(&name)
    ))
    .help("remove the tag, or put quotes around the value if the `!` is part of it");
    tree.fault(place, fault);
}

fn syntax_error(error: &ScanError) -> (TextSpan, ConfigFault) {
    let info = error.info();
    let place = place(&Span::empty(*error.marker()));
    let fault = ConfigFault::new(format!("this is not valid YAML or JSON: {info}"));
    let fault = if info.contains("unknown anchor") {
        // The usual cause by far is `host: *.example.com`. The value may be a secret: do not quote it.
        ConfigFault::new("a value that starts with `*` is an alias, and no anchor above has this \
            name")
            .help("put quotes around it if the `*` is part of it, for example \"*.example.com\"; or write the anchor first: `&name value`")
    } else if info.contains("anchor") {
        ConfigFault::new("a value that starts with `*` or `&` has a special meaning in YAML")
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
    (place, fault)
}

fn place(span: &Span) -> TextSpan {
    let same_line = span.start.line() == span.end.line();
    let width = span.end.col().saturating_sub(span.start.col());
    TextSpan::at(
        span.start.line().max(1),
        span.start.col().saturating_add(1),
        if same_line { width.max(1) } else { 1 },
    )
}
