//! The descriptors of the services, by file name and by the symbols that they define.
//!
//! `scripts/services-fds` generates `services.fds` from the published definitions. It is parsed once, at
//! the first query.

use crate::wire::protobuf::read::{ProtobufError, WireFields, WireValue};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::LazyLock;

static SERVICES: &[u8] = include_bytes!("services.fds");

/// All file descriptors.
#[derive(Debug, Default)]
pub(super) struct Files {
    by_name: HashMap<String, &'static [u8], FixedState>,
    by_symbol: HashMap<String, &'static [u8], FixedState>,
}

impl Files {
    pub(super) fn all() -> &'static Self {
        static ALL: LazyLock<Files> = LazyLock::new(|| {
            // A test checks that the set can be parsed.
            Files::read(SERVICES).unwrap_or_default()
        });
        &ALL
    }

    /// Returns the file of this name.
    pub(super) fn named(&self, name: &str) -> Option<&'static [u8]> {
        self.by_name.get(name).copied()
    }

    /// Returns the file that defines this message, enumeration, service or method.
    pub(super) fn defining(&self, symbol: &str) -> Option<&'static [u8]> {
        self.by_symbol.get(symbol).copied()
    }

    /// Parses a `FileDescriptorSet`.
    fn read(set: &'static [u8]) -> Result<Self, ProtobufError> {
        let mut files = Self::default();
        let mut fields = WireFields::of(set);
        while let Some((number, value)) = fields.next_field()? {
            if number == 1 {
                files.add(value.bytes()?)?;
            }
        }
        Ok(files)
    }

    /// Adds a `FileDescriptorProto`.
    fn add(&mut self, file: &'static [u8]) -> Result<(), ProtobufError> {
        let package = text(file, 2)?;
        let mut fields = WireFields::of(file);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                1 => {
                    self.by_name.insert(value.text()?.to_owned(), file);
                }
                4 => self.message(file, package, value)?,
                5 => {
                    self.symbol(file, package, value)?;
                }
                6 => self.service(file, package, value)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a `DescriptorProto` and its nested types.
    fn message(
        &mut self,
        file: &'static [u8],
        scope: &str,
        value: WireValue<'_>,
    ) -> Result<(), ProtobufError> {
        let scope = self.symbol(file, scope, value)?;
        let mut fields = WireFields::of(value.bytes()?);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                3 => self.message(file, &scope, value)?,
                4 => {
                    self.symbol(file, &scope, value)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a `ServiceDescriptorProto` and its methods.
    fn service(
        &mut self,
        file: &'static [u8],
        scope: &str,
        value: WireValue<'_>,
    ) -> Result<(), ProtobufError> {
        let scope = self.symbol(file, scope, value)?;
        let mut fields = WireFields::of(value.bytes()?);
        while let Some((number, value)) = fields.next_field()? {
            if number == 2 {
                self.symbol(file, &scope, value)?;
            }
        }
        Ok(())
    }

    /// Adds a named symbol, and returns its full name.
    fn symbol(
        &mut self,
        file: &'static [u8],
        scope: &str,
        value: WireValue<'_>,
    ) -> Result<String, ProtobufError> {
        let name = text(value.bytes()?, 1)?;
        let full = match scope {
            "" => name.to_owned(),
            scope => format!("{scope}.{name}"),
        };
        self.by_symbol.insert(full.clone(), file);
        Ok(full)
    }
}

/// Returns the text in the field `wanted` of a message.
fn text(message: &[u8], wanted: u32) -> Result<&str, ProtobufError> {
    let mut fields = WireFields::of(message);
    while let Some((number, value)) = fields.next_field()? {
        if number == wanted {
            return value.text();
        }
    }
    Ok("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_descriptors_can_be_decoded() {
        let files = Files::read(SERVICES).unwrap();
        let rls = files.named("envoy/service/ratelimit/v3/rls.proto").unwrap();
        for symbol in [
            "envoy.service.ratelimit.v3.RateLimitService",
            "envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit",
            "envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit",
        ] {
            assert_eq!(files.defining(symbol), Some(rls), "{symbol}");
        }
        assert_eq!(files.defining("envoy.service.ratelimit.v3.Nothing"), None);
    }

    #[test]
    fn every_imported_file_descriptor_is_present() {
        let files = Files::read(SERVICES).unwrap();
        for file in files.by_name.values() {
            let mut fields = WireFields::of(file);
            while let Some((number, value)) = fields.next_field().unwrap() {
                if number == 3 {
                    let name = value.text().unwrap();
                    assert!(files.named(name).is_some(), "{name}");
                }
            }
        }
    }
}
