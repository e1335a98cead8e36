//! A resource: a domain with its descriptors, written as a file of envoyproxy/ratelimit.
//!
//! The same translator reads both, so a configuration means the same however it arrives.

use super::messages::{AnyResource, TYPE_URL};
use std::fmt::Write;
use tidegate_frontends::wire::protobuf::read::{ProtobufError, WireFields};

/// The maximum number of descriptors, and names of replaced limits, of all resources together.
const DESCRIPTORS_MAX: usize = 100_000;

/// The maximum nesting of descriptors that is read. The translator accepts less, and its error names the bound.
const DEPTH_MAX: usize = 32;

/// The longest name of a resource in messages, in characters.
const NAME_MAX: usize = 128;

/// The units, by number.
const UNITS: [&str; 8] = [
    "unknown", "second", "minute", "hour", "day", "month", "year", "week",
];

const TOO_MANY: ProtobufError =
    ProtobufError::new("the resources have more than 100000 descriptors together");
const TOO_DEEP: ProtobufError =
    ProtobufError::new("descriptors are nested more than 32 levels deep");

/// A reader of resources, which counts their descriptors and names of replaced limits.
#[derive(Debug, Default)]
pub(super) struct ResourceReader {
    descriptors: usize,
}

/// A domain.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DomainResource {
    pub(super) name: String,
    pub(super) domain: String,
    pub(super) descriptors: Vec<DescriptorResource>,
}

#[expect(clippy::struct_excessive_bools, reason = "as in the message")]
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DescriptorResource {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) rate_limit: Option<RateLimitResource>,
    pub(super) descriptors: Vec<Self>,
    pub(super) shadow_mode: bool,
    pub(super) detailed_metric: bool,
    pub(super) quota_mode: bool,
    pub(super) has_metadata: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RateLimitResource {
    pub(super) unit: u32,
    pub(super) requests_per_unit: u32,
    pub(super) unlimited: bool,
    pub(super) name: String,
    pub(super) replaces: Vec<String>,
}

// === impl ResourceReader ===

impl ResourceReader {
    /// Reads a resource.
    pub(super) fn read(&mut self, resource: &AnyResource) -> Result<DomainResource, String> {
        if resource.type_url != TYPE_URL {
            let found = shown(&resource.type_url);
            return Err(format!(
                "a resource has the type `{found}`; expected `{TYPE_URL}`"
            ));
        }
        let read = self.domain(&resource.value);
        read.map_err(|why| format!("a resource cannot be read: {why}"))
    }

    fn domain(&mut self, message: &[u8]) -> Result<DomainResource, ProtobufError> {
        let mut domain = DomainResource::default();
        let mut fields = WireFields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                1 => value.text()?.clone_into(&mut domain.name),
                2 => value.text()?.clone_into(&mut domain.domain),
                3 => domain.descriptors.push(self.descriptor(value.bytes()?, 1)?),
                _ => {}
            }
        }
        Ok(domain)
    }

    fn descriptor(
        &mut self,
        message: &[u8],
        depth: usize,
    ) -> Result<DescriptorResource, ProtobufError> {
        if depth > DEPTH_MAX {
            return Err(TOO_DEEP);
        }
        self.descriptors = self.descriptors.saturating_add(1);
        if self.descriptors > DESCRIPTORS_MAX {
            return Err(TOO_MANY);
        }
        let mut descriptor = DescriptorResource::default();
        let mut fields = WireFields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                1 => value.text()?.clone_into(&mut descriptor.key),
                2 => value.text()?.clone_into(&mut descriptor.value),
                3 => {
                    let limit = descriptor.rate_limit.get_or_insert_default();
                    limit.merge(value.bytes()?, &mut self.descriptors)?;
                }
                4 => {
                    let below = self.descriptor(value.bytes()?, depth.saturating_add(1))?;
                    descriptor.descriptors.push(below);
                }
                5 => descriptor.shadow_mode = value.varint()? != 0,
                6 => descriptor.detailed_metric = value.varint()? != 0,
                7 => descriptor.quota_mode = value.varint()? != 0,
                8 => {
                    value.bytes()?;
                    descriptor.has_metadata = true;
                }
                _ => {}
            }
        }
        Ok(descriptor)
    }
}

impl RateLimitResource {
    /// Reads a message into this one, as protobuf merges messages that occur twice. Names of replaced limits
    /// count as descriptors: each of them is a line of text, and takes only two bytes of the message.
    fn merge(&mut self, message: &[u8], count: &mut usize) -> Result<(), ProtobufError> {
        let mut fields = WireFields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                1 => self.unit = value.narrow()?,
                2 => self.requests_per_unit = value.narrow()?,
                3 => self.unlimited = value.varint()? != 0,
                4 => value.text()?.clone_into(&mut self.name),
                5 => {
                    *count = count.saturating_add(1);
                    if *count > DESCRIPTORS_MAX {
                        return Err(TOO_MANY);
                    }
                    let mut name = String::new();
                    let mut fields = WireFields::of(value.bytes()?);
                    while let Some((number, value)) = fields.next_field()? {
                        if number == 1 {
                            value.text()?.clone_into(&mut name);
                        }
                    }
                    self.replaces.push(name);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

// === impl DomainResource ===

impl DomainResource {
    /// Returns the name for messages: that of the resource, or its domain if it has none.
    pub(super) fn name(&self) -> String {
        let name = if self.name.is_empty() {
            &self.domain
        } else {
            &self.name
        };
        shown(name)
    }

    /// Returns the text of a file of envoyproxy/ratelimit.
    pub(super) fn to_yaml(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        writeln!(text, "domain: {}", quoted(&self.domain)).ok();
        write_descriptors(&mut text, &self.descriptors, 0);
        text
    }
}

fn write_descriptors(text: &mut String, descriptors: &[DescriptorResource], indent: usize) {
    if descriptors.is_empty() {
        return;
    }
    let pad = " ".repeat(indent);
    writeln!(text, "{pad}descriptors:").ok();
    for descriptor in descriptors {
        writeln!(text, "{pad}  - key: {}", quoted(&descriptor.key)).ok();
        if !descriptor.value.is_empty() {
            writeln!(text, "{pad}    value: {}", quoted(&descriptor.value)).ok();
        }
        if let Some(limit) = &descriptor.rate_limit {
            write_limit(text, limit, &pad);
        }
        for (name, is_set) in [
            ("shadow_mode", descriptor.shadow_mode),
            ("detailed_metric", descriptor.detailed_metric),
            ("quota_mode", descriptor.quota_mode),
        ] {
            if is_set {
                writeln!(text, "{pad}    {name}: true").ok();
            }
        }
        if descriptor.has_metadata {
            writeln!(text, "{pad}    metadata: {{}}").ok();
        }
        write_descriptors(text, &descriptor.descriptors, indent.saturating_add(4));
    }
}

fn write_limit(text: &mut String, limit: &RateLimitResource, pad: &str) {
    writeln!(text, "{pad}    rate_limit:").ok();
    let unit = usize::try_from(limit.unit).ok();
    match unit.and_then(|unit| UNITS.get(unit)) {
        // An unlimited limit has no unit.
        Some(_) if limit.unit == 0 && limit.unlimited => {}
        Some(unit) => {
            writeln!(text, "{pad}      unit: {unit}").ok();
        }
        None => {
            writeln!(text, "{pad}      unit: {}", limit.unit).ok();
        }
    }
    if limit.unlimited {
        writeln!(text, "{pad}      unlimited: true").ok();
    }
    let amount = limit.requests_per_unit;
    if amount > 0 || !limit.unlimited {
        writeln!(text, "{pad}      requests_per_unit: {amount}").ok();
    }
    if !limit.name.is_empty() {
        writeln!(text, "{pad}      name: {}", quoted(&limit.name)).ok();
    }
    if !limit.replaces.is_empty() {
        writeln!(text, "{pad}      replaces:").ok();
    }
    for name in &limit.replaces {
        writeln!(text, "{pad}        - name: {}", quoted(name)).ok();
    }
}

/// Writes a text so that YAML reads it unchanged.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a name for one line of a log.
fn shown(name: &str) -> String {
    let visible = name.chars().take(NAME_MAX);
    visible
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
