//! `messages`: limits on the messages that clients send on a WebSocket.

use super::CarriedPolicies;
use crate::language::reader::ConfigReader;
use crate::language::table::FieldReader;
use crate::language::words::UNLIMITED;
use crate::syntax::NodeKind;
use crate::tables::route::MESSAGES;
use tidegate_core::{LimitMode, Quota};
use tidegate_policy::route::{MessageBounds, MessageLimits, Route};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::rate::{self, RateText};
use tidegate_policy::text::size;

/// The default rate of frames that do not begin a message.
const FRAMES: RateText = RateText {
    amount: 1_000,
    period_us: 1_000_000,
    burst: Some(10_000),
    calendar: None,
};

/// The default rate of bytes.
const BYTES: RateText = RateText {
    amount: 10 << 20,
    period_us: 1_000_000,
    burst: Some(100 << 20),
    calendar: None,
};

/// The largest `message_bytes`. With the default of `bytes` it can still be counted exactly.
const MESSAGE_BYTES_MAX: u64 = 1 << 30;

/// The longest frame header, in bytes. It counts as well.
const FRAME_HEAD_BYTES: u64 = 14;

/// Reads `messages`: the name of a policy, or a map with that and the bounds.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    route: &FieldReader<'_>,
    plan: &mut CarriedPolicies,
    mode: LimitMode,
) -> Option<MessageLimits> {
    let value = route.get("messages")?;
    let (policy, fields) = match &value.node.kind {
        NodeKind::Map(_) => {
            let fields = reader.fields(&value, &MESSAGES)?;
            (fields.get("policy"), Some(fields))
        }
        _ => (Some(value), None),
    };
    let policy = policy.and_then(|value| plan.read_single(reader, &value, mode));
    let bounds = bounds(reader, fields.as_ref());
    Some(MessageLimits { policy, bounds })
}

fn bounds(reader: &mut ConfigReader<'_>, fields: Option<&FieldReader<'_>>) -> MessageBounds {
    let default = Some(Route::BODY_BYTES);
    let message_bytes = limited(reader, fields, ("message_bytes", default), |text| {
        let bytes = size::parse(text)?;
        if bytes > MESSAGE_BYTES_MAX {
            let fault = ConfigFault::new(format!("{} is too large", ConfigFault::quote(text)));
            return Err(fault.help("at most 1GiB, or `unlimited`"));
        }
        Ok(bytes)
    });
    // A message may be sent in a single frame.
    let largest = message_bytes.map_or(0, |bytes| bytes.saturating_add(FRAME_HEAD_BYTES));
    let default = quota(BYTES, largest).ok();
    let bytes = limited(reader, fields, ("bytes", default), |text| {
        let rate = rate::parse_bytes(text)?;
        let burst = rate.burst.zip(message_bytes);
        if burst.is_some_and(|(burst, message_bytes)| burst < message_bytes) {
            let fault = ConfigFault::new("the burst is smaller than `message_bytes`");
            let help = "a message of that size could never pass: raise the burst, or lower \
                `message_bytes`";
            return Err(fault.help(help));
        }
        quota(rate, largest)
    });
    let default = quota(FRAMES, 1).ok();
    let frames = limited(reader, fields, ("frames", default), |text| {
        quota(rate::parse(text)?, 1)
    });
    MessageBounds {
        message_bytes,
        bytes,
        frames,
    }
}

/// Reads a bound. Returns the default if the field is absent, and `None` for `unlimited`.
fn limited<T>(
    reader: &mut ConfigReader<'_>,
    fields: Option<&FieldReader<'_>>,
    (name, default): (&str, Option<T>),
    parse: impl Fn(&str) -> Result<T, ConfigFault>,
) -> Option<T> {
    let written = fields.and_then(|fields| {
        reader.setting(fields, name, |text| match UNLIMITED.get(text) {
            Some(()) => Ok(None),
            None => parse(text).map(Some),
        })
    });
    written.unwrap_or(default)
}

/// Builds the quota of a rate with a burst of at least `once`.
fn quota(rate: RateText, once: u64) -> Result<Quota, ConfigFault> {
    let burst = rate.burst.unwrap_or(rate.amount).max(once);
    let quota = Quota::new(rate.amount, rate.period_us).burst(burst).build();
    quota.map_err(|_| {
        ConfigFault::new("this rate cannot be counted exactly").help("choose a smaller one")
    })
}
