//! Limits that requests bring themselves: what a proxy says of a descriptor, instead of anything that
//! is configured.
//!
//! Each policy has one more limit for them, which is written nowhere. Its buckets are those of no other
//! limit, `policy/override/descriptor:…`, and its bands are made from what each request tells.

use crate::config::down_by_amount;
use crate::limit::{Band, ChargeTime, KeyPart, Limit, Missing, Policy};
use crate::request::ToldLimit;
use crate::respond::{HeaderNames, NameVisibility};
use tidegate_core::{Algorithm, Align, LimitMode, Quota};

/// What the hidden limit of every policy is called.
const NAME: &str = "override";

/// How what is told is counted: as Envoy's rate limit service does it.
const ALGORITHM: Algorithm = Algorithm::FixedWindow(Align::Clock);

/// The limit that descriptors meet which bring their own, without the bands that come with them.
pub(crate) fn hidden() -> Limit {
    Limit {
        name: NAME.to_owned(),
        enabled: true,
        conditions: Vec::new(),
        key: vec![KeyPart::Descriptor],
        missing: Missing::Skip,
        bands: Vec::new(),
        algorithm: ALGORITHM,
        mode: LimitMode::Enforce,
        shadowed: false,
        quota_mode: false,
        replaces: Vec::new(),
        charge: ChargeTime::IfFits,
        waiting: None,
        block: None,
        refundable: true,
        on_failure: None,
        refusal: None,
        template: None,
        plan: None,
        warn: None,
    }
}

impl Policy {
    /// What the limit is called that descriptors meet which bring their own.
    pub const fn override_name() -> &'static str {
        NAME
    }

    /// The one band of a limit that a request tells: a window that starts by the clock.
    ///
    /// Told another amount or another period, the same descriptor is counted anew. The error says why
    /// there can be no such band.
    ///
    /// ```
    /// use tidegate_policy::{Config, ToldLimit};
    ///
    /// let policy = &Config::built_in().policies[0];
    /// let told = ToldLimit { amount: 10, period_us: 60_000_000 };
    /// let band = policy.told_band(told)?;
    /// assert_eq!(band.text, "10/60000000us");
    /// assert_eq!(band.quota.amount(), 10);
    /// # Ok::<(), String>(())
    /// ```
    pub fn told_band(&self, told: ToldLimit) -> Result<Band, String> {
        let text = format!("{}/{}us", told.amount, told.period_us);
        let spec = Quota::new(told.amount, told.period_us)
            .algorithm(ALGORITHM)
            // Requests that are refused elsewhere are to leave nothing behind here, wherever it is.
            .refundable(true)
            .label(&text);
        let quota = match self.hidden.charge {
            ChargeTime::EvenIfRefused => down_by_amount(spec, told.amount),
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

    /// How header fields spell a band that a request told.
    pub fn told_spoken(&self, band: &Band) -> HeaderNames {
        let name = match self.respond().names {
            NameVisibility::Shown => NAME.to_owned(),
            NameVisibility::Hidden => self.limits.len().saturating_add(1).to_string(),
        };
        HeaderNames::new(name, &band.quota)
    }
}
