//! The settings of a refusal.

use super::wording;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::whole;
use crate::language::table::FieldReader;
use crate::syntax::NodeKind;
use tidegate_policy::respond::{Escaping, LayeredSetting, Placeholder, RefusalLayer, Wording};
use tidegate_policy::text::ConfigFault;

/// The longest body, in bytes. Bodies are rendered for every refusal.
const BODY_MAX: usize = 16 << 10;

/// The longest message, in bytes.
const MESSAGE_MAX: usize = 1 << 10;

/// The longest type or content type, in bytes.
const TEXT_MAX: usize = 512;

/// The owner of the refusal settings, for messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalOwner {
    Policy,
    Limit,
}

/// Reads the settings of a refusal and puts them on top of `below`.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    below: &RefusalLayer,
    whose: RefusalOwner,
) -> RefusalLayer {
    let written = read_own(reader, fields, below, whose);
    below.clone().with(&written)
}

/// Reads the settings of a refusal without merging them into `below`.
pub(super) fn read_own(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    below: &RefusalLayer,
    whose: RefusalOwner,
) -> RefusalLayer {
    let status = reader.setting(fields, "status", status);
    let type_uri = reader.setting(fields, "type", type_uri);
    let content_type = reader.setting(fields, "content_type", content_type);
    let message = text(reader, fields, "message", MESSAGE_MAX)
        .filter(|message| is_no_circle(reader, fields, message));
    let body = text(reader, fields, "body", BODY_MAX);
    let written = RefusalLayer {
        status,
        type_uri: LayeredSetting::written(type_uri),
        message: LayeredSetting::written(message),
        content_type,
        body,
    };
    let layer = below.clone().with(&written);
    check_json(reader, fields, &layer);
    // Do not warn for a policy: its setting may still affect the settings of a limit.
    if whose == RefusalOwner::Limit {
        warn_without_effect(reader, fields, &layer);
    }
    written
}

fn status(text: &str) -> Result<u16, ConfigFault> {
    let status = whole(text, &(400..=599)).map_err(|fault| {
        fault.help("a refusal is an error of the client (4xx) or of the server (5xx)")
    })?;
    Ok(u16::try_from(status).unwrap_or(429))
}

fn type_uri(text: &str) -> Result<String, ConfigFault> {
    let belongs = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    if (1..=TEXT_MAX).contains(&text.len()) && text.bytes().all(belongs) {
        return Ok(text.to_owned());
    }
    let message = format!(
        "{} cannot be the type of a problem",
        ConfigFault::quote(text)
    );
    Err(ConfigFault::new(message)
        .help("expected a URI, for example `https://example.com/errors/limit`"))
}

fn content_type(text: &str) -> Result<String, ConfigFault> {
    let is_token = |text: &str| {
        let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        !text.is_empty() && text.bytes().all(belongs)
    };
    let media = text.split(';').next().unwrap_or_default().trim_end();
    let is_media = media
        .split_once('/')
        .is_some_and(|(of, sub)| is_token(of) && is_token(sub));
    let is_shown = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if is_media && is_shown && text.len() <= TEXT_MAX {
        return Ok(text.to_owned());
    }
    let message = format!("{} is not a content type", ConfigFault::quote(text));
    Err(ConfigFault::new(message)
        .help("for example `application/json` or `text/plain; charset=utf-8`"))
}

/// Reads text with placeholders, unchanged.
fn text(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    name: &str,
    most: usize,
) -> Option<Wording> {
    let value = fields.get(name)?;
    if matches!(value.node.kind, NodeKind::Map(_)) {
        let fault = ConfigFault::new(format!("`{name}` is a map; expected text")).help(
            "use single quotes, because a brace starts a map in YAML: '{\"error\":\"{title}\"}'",
        );
        reader.error(value.spot(), fault);
        return None;
    }
    let text = reader.text(&value)?;
    let read = if text.len() > most {
        Err(ConfigFault::new(format!(
            "`{name}` has {} bytes; at most {most} are supported",
            text.len()
        )))
    } else {
        wording::parse(&text)
    };
    reader.accept(&value, read)
}

/// Returns false and reports the error if a message contains itself or the sentence that it replaces.
/// Its expansion would never end.
fn is_no_circle(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    message: &Wording,
) -> bool {
    let is_circle = message.has(&[Placeholder::Message, Placeholder::Detail]);
    if let (true, Some(value)) = (is_circle, fields.get("message")) {
        let fault = ConfigFault::new("`message` contains itself")
            .help("it is the text of {message} and {detail}; remove them from it");
        reader.error(value.spot(), fault);
    }
    !is_circle
}

/// Checks that a body with a JSON content type is JSON for all values of its placeholders.
fn check_json(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>, layer: &RefusalLayer) {
    let written: Option<ConfigValue<'_>> =
        fields.get("body").or_else(|| fields.get("content_type"));
    let refusal = layer.refusal();
    if let (Some(value), Escaping::Json) = (written, refusal.escaping()) {
        let read = wording::check_json(&refusal.body, &refusal.content_type);
        reader.accept(&value, read);
    }
}

fn warn_without_effect(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    layer: &RefusalLayer,
) {
    use Placeholder::{Detail, Message, Type};
    let body = layer.refusal().body;
    for (name, shown, by) in [
        ("type", "{type}", &[Type][..]),
        ("message", "{message}", &[Message, Detail]),
    ] {
        if let (Some(value), false) = (fields.get(name), body.has(by)) {
            let fault =
                ConfigFault::new(format!("`{name}` has no effect: the body has no {shown}"))
                    .help(format!("add {shown} to the body, or remove `{name}`"));
            reader.warn(value.key_spot(), fault);
        }
    }
}
