//! Text with placeholders, and the check for valid JSON.

use tidegate_policy::respond::{Placeholder, Wording, WordingPiece};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::closest;

/// Reads text with placeholders.
pub(super) fn parse(text: &str) -> Result<Wording, ConfigFault> {
    Wording::parse(text).map_err(|name| {
        let names = || Placeholder::ALL.iter().map(|(name, _)| *name);
        let message = format!(
            "{} is not a placeholder",
            ConfigFault::quote(&format!("{{{name}}}"))
        );
        ConfigFault::new(message).help(match closest(name, names()) {
            Some(meant) => format!("did you mean {{{meant}}}?"),
            None => {
                let all: Vec<String> = names().map(|name| format!("{{{name}}}")).collect();
                format!("expected {}", all.join(", "))
            }
        })
    })
}

/// Checks that `body` is JSON for all values of its placeholders.
///
/// Text is escaped as within a string, so it must be within one. A sample letter, which is not JSON
/// anywhere else, detects that. A number may be absent, which JSON writes as `null`: the body must be
/// valid with either. A list must be where a value is allowed.
pub(super) fn check_json(body: &Wording, content_type: &str) -> Result<(), ConfigFault> {
    for number in ["7", "null"] {
        let sample = sample(body, number);
        let Err(error) = serde_json::from_str::<serde_json::Value>(&sample) else {
            continue;
        };
        let shown = ConfigFault::quote(sample.trim());
        let message = format!("the body is not JSON, but the content type is `{content_type}`");
        return Err(ConfigFault::new(message).help(format!(
            "with example values it is {shown}: {error}; put quotes around text, \"{{title}}\", \
             but not around numbers and lists, {{retry_after}}"
        )));
    }
    Ok(())
}

/// Returns the body with a sample value for each placeholder.
fn sample(body: &Wording, number: &str) -> String {
    let pieces = body.pieces().iter();
    pieces
        .map(|piece| match piece {
            WordingPiece::Text(text) => text.as_str(),
            WordingPiece::Value(Placeholder::Status) => "429",
            WordingPiece::Value(Placeholder::ViolatedPolicies) => "[\"x\"]",
            WordingPiece::Value(value) if value.is_number() => number,
            WordingPiece::Value(_) => "x",
        })
        .collect()
}
