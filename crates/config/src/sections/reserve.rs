//! `reserve`: a policy that takes reservations.

use crate::language::reader::ConfigReader;
use crate::language::table::FieldReader;
use crate::syntax::NodeKind;
use crate::tables::RESERVE;
use std::time::Duration;
use tidegate_policy::limit::Limit;
use tidegate_policy::policy::{Evaluate, ReserveRules};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// Reads `reserve` of a policy: the lifetime of reservations, or a map. `None` if the policy takes
/// none.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
) -> Option<ReserveRules> {
    let value = fields.get("reserve")?;
    if !matches!(value.node.kind, NodeKind::Map(_)) {
        let default_ttl = reader.parse(&value, length)?;
        return Some(ReserveRules::new(default_ttl));
    }
    let fields = reader.fields(&value, &RESERVE)?;
    let default_ttl = reader.setting(&fields, "default_ttl", length);
    let max_ttl = reader.setting(&fields, "max_ttl", length);
    let reserving = match (default_ttl, max_ttl) {
        (Some(default_ttl), None) => ReserveRules::new(default_ttl),
        (None, Some(max_ttl)) => ReserveRules {
            default_ttl: ReserveRules::DEFAULT_TTL.min(max_ttl),
            max_ttl,
        },
        (None, None) => ReserveRules::new(ReserveRules::DEFAULT_TTL),
        (Some(default_ttl), Some(max_ttl)) => ReserveRules {
            default_ttl,
            max_ttl,
        },
    };
    if let (true, Some(value)) = (
        reserving.default_ttl > reserving.max_ttl,
        fields.get("default_ttl"),
    ) {
        let fault = ConfigFault::new("`default_ttl` is longer than `max_ttl`");
        reader.error(
            value.spot(),
            fault.help("lower `default_ttl`, or raise `max_ttl`"),
        );
    }
    Some(reserving)
}

/// Reports settings of a policy that cannot be combined with reservations.
pub(crate) fn check(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    around: Evaluate,
    limits: &[Limit],
) {
    let Some(value) = fields.get("reserve") else {
        return;
    };
    if let Some(limit) = limits.iter().find(|limit| limit.waiting.is_some()) {
        let fault = ConfigFault::new(format!(
            "`reserve` conflicts with `on_refusal: wait` of `{}`",
            limit.name
        ));
        reader.error(
            value.key_spot(),
            fault.help("remove `reserve`, or `on_refusal: wait`"),
        );
    }
    if around == Evaluate::Each {
        let fault =
            ConfigFault::new("`reserve` conflicts with `evaluate: each`: a reservation is atomic");
        reader.error(
            value.key_spot(),
            fault.help("remove `reserve`, or use `evaluate: all`"),
        );
    }
}

fn length(text: &str) -> Result<Duration, ConfigFault> {
    let length = Duration::from_micros(duration::parse(text)?);
    if (ReserveRules::SHORTEST..=ReserveRules::LONGEST).contains(&length) {
        return Ok(length);
    }
    let message = format!("{} is not from 1ms to 1h", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help(
        "choose the longest expected duration of the work, for \
        example `60s`",
    ))
}
