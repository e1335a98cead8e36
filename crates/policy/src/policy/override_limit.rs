//! Limits that requests carry themselves: a proxy sends one with a descriptor, and it replaces the configured
//! limits.
//!
//! Each policy has one additional limit for them, which no configuration contains. It has its own buckets,
//! `policy/override/descriptor:…`, and its bands are built from each request.

use super::Policy;
use crate::band::{Band, overdraft_of_amount};
use crate::key_part::KeyPart;
use crate::limit::{ChargeTime, Limit, MissingIdentity};
use crate::request::LimitOverride;
use crate::respond::{HeaderNames, NameVisibility};
use crate::unit::Unit;
use tidegate_core::{Algorithm, Align, Quota};

/// The name of the hidden limit of every policy.
const NAME: &str = "override";

/// The algorithm of carried limits, the same as in Envoy's rate limit service.
const ALGORITHM: Algorithm = Algorithm::FixedWindow(Align::Clock);

/// Returns the limit for descriptors that carry their own, without the bands that come with them. It counts
/// the unit of a number.
pub(super) fn hidden(units: &[Unit]) -> Limit {
    let unit = match units {
        [only] => only.clone(),
        _ => Unit::default(),
    };
    Limit {
        unit,
        key: vec![KeyPart::Descriptor],
        missing: MissingIdentity::Skip,
        algorithm: ALGORITHM,
        refundable: true,
        ..Limit::new(NAME)
    }
}

impl Policy {
    /// Returns the name of the limit for descriptors that carry their own.
    pub const fn override_name() -> &'static str {
        NAME
    }

    /// Builds the only band of a limit that a request carries: a window aligned to the clock.
    ///
    /// With another amount or period, the same descriptor is counted from zero. The error is the reason why
    /// no such band can exist.
    ///
    /// ```
    /// use tidegate_policy::{Evaluate, Policy, LimitOverride};
    ///
    /// let policy = Policy::new("api".to_owned(), Evaluate::All, Vec::new());
    /// let told = LimitOverride { amount: 10, period_us: 60_000_000 };
    /// let band = policy.override_band(told)?;
    /// assert_eq!(band.text, "10/60000000us");
    /// assert_eq!(band.quota.amount(), 10);
    /// # Ok::<(), String>(())
    /// ```
    pub fn override_band(&self, told: LimitOverride) -> Result<Band, String> {
        let text = format!("{}/{}us", told.amount, told.period_us);
        let spec = Quota::new(told.amount, told.period_us)
            .algorithm(ALGORITHM)
            // A request that another limit refuses must leave no charge here, wherever this bucket is stored.
            .refundable(true)
            .label(&text);
        let quota = match self.hidden.charge {
            ChargeTime::EvenIfRefused => overdraft_of_amount(spec, told.amount),
            _ => spec.build(),
        };
        match quota {
            Ok(quota) => Ok(Band {
                text,
                label: None,
                quota,
            }),
            Err(error) => Err(format!("the limit {text} of a descriptor: {error}")),
        }
    }

    /// Returns the header names of a band that a request carries.
    pub fn override_header_names(&self, band: &Band) -> HeaderNames {
        let name = match self.respond().names {
            NameVisibility::Shown => NAME.to_owned(),
            NameVisibility::Hidden => self.limits.len().saturating_add(1).to_string(),
        };
        HeaderNames::new(name, &band.quota, &self.hidden.unit)
    }
}
