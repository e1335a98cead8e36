//! A key of the open layout on its way to the script.

use crate::request::RedisKey;

/// The form of a stored bucket. The numbers are those of `open.lua`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As in the packed layout.
    Packed = 0,
    /// A hash with `tokens` and `lastRefill`.
    Millis = 1,
    /// A hash with `tokens` and `last_refill_nanos`.
    Nanos = 2,
    /// A sorted set with a member for each unit.
    Log = 3,
    /// A field of a hash, `start:count`.
    Window = 4,
}

/// The content of a [`RedisKey`] in the open layout: one byte for the form, two for the length of the
/// name, the name, the field. Two buckets are the same if their keys are, and all other code treats a key
/// as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenKey<'a> {
    pub(crate) form: Form,
    pub(crate) name: &'a [u8],
    /// Empty but for [`Form::Window`].
    pub(crate) field: &'a [u8],
}

impl<'a> OpenKey<'a> {
    /// A packed bucket's.
    pub(crate) fn packed(name: &'a [u8]) -> Self {
        Self {
            form: Form::Packed,
            name,
            field: &[],
        }
    }

    /// Encodes the key.
    pub(crate) fn write(&self) -> RedisKey {
        let mut key = RedisKey::new();
        key.push(self.form as u8);
        let length = u16::try_from(self.name.len()).unwrap_or(u16::MAX);
        key.extend_from_slice(&length.to_le_bytes());
        key.extend_from_slice(self.name);
        key.extend_from_slice(self.field);
        key
    }

    /// Decodes a key. Bytes of another form are the name of a packed bucket.
    pub(crate) fn read(key: &'a RedisKey) -> Self {
        let read = || {
            let (form, rest) = key.split_first()?;
            let (length, rest) = rest.split_first_chunk::<2>()?;
            let (name, field) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            let form = match form {
                1 => Form::Millis,
                2 => Form::Nanos,
                3 => Form::Log,
                4 => Form::Window,
                _ => Form::Packed,
            };
            Some(Self { form, name, field })
        };
        read().unwrap_or(Self::packed(key))
    }
}
