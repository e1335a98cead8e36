//! `rate` and `bands`: the amount a limit allows.

use super::fault::ConfigFault;
use super::fields::{BAND, BANDS_MAX};
use super::rate::{self, RateText};
use super::reader::{ConfigReader, ConfigValue};
use super::scalar::{name, whole};
use super::syntax::NodeKind;
use super::table::FieldReader;
use crate::limit::Band;
use std::time::Duration;
use tidegate_core::{Algorithm, OnChange, Quota, QuotaError, QuotaSpec};

/// Settings that all bands of a limit share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BandDefaults {
    pub(crate) algorithm: Algorithm,
    /// The overdraft: how far below empty charges may go. `None` is the amount of each band, or as much
    /// of it as fits.
    pub(crate) overdraft: Option<u64>,
    pub(crate) refundable: bool,
    pub(crate) on_change: OnChange,
    /// The longest wait of a queued request; `None` if requests do not wait.
    pub(crate) max_wait: Option<Duration>,
}

/// Reads a single band, outside any configuration.
pub(crate) fn parse(
    text: &str,
    algorithm: Algorithm,
    max_wait: Option<Duration>,
) -> Result<Band, String> {
    parse_changing(text, algorithm, max_wait, OnChange::Keep)
}

/// Reads a single band. `on_change` sets the effect on its buckets when its numbers change.
pub(crate) fn parse_changing(
    text: &str,
    algorithm: Algorithm,
    max_wait: Option<Duration>,
    on_change: OnChange,
) -> Result<Band, String> {
    let counting = BandDefaults {
        algorithm,
        overdraft: Some(0),
        refundable: false,
        on_change,
        max_wait,
    };
    let band = rate::parse(text).and_then(|rate| build(text.to_owned(), rate, None, counting));
    band.map_err(ConfigFault::into_sentence)
}

/// Builds the band for a rate of a plan.
///
/// # Errors
///
/// Returns the reason if the rate cannot be represented.
pub(crate) fn build_planned(
    rate: crate::plan::PlanRate,
    label: &str,
    counting: BandDefaults,
) -> Result<Band, String> {
    let numbers = RateText {
        amount: rate.amount,
        period_us: rate.period_us,
        burst: rate.burst,
    };
    let band = build(rate.to_string(), numbers, Some(label.to_owned()), counting);
    band.map_err(ConfigFault::into_sentence)
}

/// Reads `rate` or `bands`.
pub(super) fn read_all(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    counting: BandDefaults,
) -> Vec<Band> {
    let burst = burst(reader, fields);
    if let Some(value) = fields.get("rate") {
        let band = match value.node.kind {
            NodeKind::Map(_) => rate_as_map(reader, &value),
            _ => from_parts(reader, &value, burst, None, counting),
        };
        return band.into_iter().collect();
    }
    let Some(value) = fields.get("bands") else {
        return Vec::new();
    };
    if let Some((_, burst)) = burst {
        let fault = ConfigFault::new("`burst` goes with `rate`, and this limit has `bands`");
        let help = "write it into its band, for example `bands: [10/s burst 50, 1000/h]`";
        reader.error(burst.key_spot(), fault.help(help));
    }
    let items = reader.list(&value);
    if items.len() > BANDS_MAX {
        let fault = ConfigFault::new(format!("a limit has at most {BANDS_MAX} bands"));
        reader.error(value.key_spot(), fault);
        return Vec::new();
    }
    let mut bands: Vec<Band> = Vec::new();
    for item in &items {
        let band = match item.node.kind {
            NodeKind::Map(_) => from_map(reader, item, counting),
            _ => from_text(reader, item, counting),
        };
        if let Some(band) = band {
            refuse_twin(reader, item, &bands, &band);
            bands.push(band);
        }
    }
    bands
}

/// Reports `rate` written as a map. A map is either a plan, which is read elsewhere, or a misplaced
/// band.
fn rate_as_map(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Band> {
    let fault = ConfigFault::new("`rate` is a map; expected a rate")
        .help("for example `10/s burst 50`; for a label, write it as one of `bands`; for a plan, name it with `plan`");
    reader.error(value.key_spot(), fault);
    None
}

pub(super) fn from_text(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    counting: BandDefaults,
) -> Option<Band> {
    from_parts(reader, value, None, None, counting)
}

fn from_map(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    counting: BandDefaults,
) -> Option<Band> {
    let fields = reader.fields(value, &BAND)?;
    let label = reader.setting(&fields, "label", name);
    let burst = burst(reader, &fields);
    from_parts(reader, &fields.get("rate")?, burst, label, counting)
}

/// Reads the field `burst` next to a rate.
fn burst<'v>(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'v>,
) -> Option<(u64, ConfigValue<'v>)> {
    let value = fields.get("burst")?;
    let burst = reader.parse(&value, |text| whole(text, &(0..=u64::MAX)))?;
    Some((burst, value))
}

/// Reads a rate, together with the field `burst` next to it.
fn from_parts(
    reader: &mut ConfigReader<'_>,
    rate_value: &ConfigValue<'_>,
    burst: Option<(u64, ConfigValue<'_>)>,
    label: Option<String>,
    counting: BandDefaults,
) -> Option<Band> {
    let (mut text, mut rate) =
        reader.parse(rate_value, |text| Ok((text.to_owned(), rate::parse(text)?)))?;
    if let Some((burst, burst_value)) = burst {
        if rate.burst.is_some() {
            let fault = ConfigFault::new("the burst is there twice: in `rate` and as `burst`");
            reader.error(burst_value.key_spot(), fault.help("write one of the two"));
            return None;
        }
        rate.burst = Some(burst);
        text = format!("{text} burst {burst}");
    }
    let band = build(text, rate, label, counting);
    reader.accept(rate_value, band)
}

fn build(
    text: String,
    rate: RateText,
    label: Option<String>,
    counting: BandDefaults,
) -> Result<Band, ConfigFault> {
    let mut spec = Quota::new(rate.amount, rate.period_us)
        .algorithm(counting.algorithm)
        .overdraft(counting.overdraft.unwrap_or(0))
        .refundable(counting.refundable)
        .on_change(counting.on_change);
    if let Some(burst) = rate.burst {
        spec = spec.burst(burst);
    }
    if let Some(label) = &label {
        spec = spec.label(label);
    }
    if let (Algorithm::TokenBucket, Some(max_wait)) = (counting.algorithm, counting.max_wait) {
        spec = spec.queue(places(rate, max_wait)).refundable(true);
    }
    let quota = match counting.overdraft {
        Some(_) => spec.build(),
        None => down_by_amount(spec, rate.amount),
    };
    match quota {
        Ok(quota) => Ok(Band { text, label, quota }),
        Err(error) => Err(unrepresentable(&text, rate, counting, error)),
    }
}

/// Builds the quota of `spec` with an overdraft of `amount`, or with the largest that fits.
pub(crate) fn down_by_amount(spec: QuotaSpec<'_>, amount: u64) -> Result<Quota, QuotaError> {
    match spec.overdraft(amount).build() {
        Err(QuotaError::OverdraftTooLarge { nearest }) => spec.overdraft(nearest).build(),
        built => built,
    }
}

/// Returns the number of units that come free within `max_wait`, rounded down so that no request gets a
/// place with a longer wait.
fn places(rate: RateText, max_wait: Duration) -> u64 {
    let product = max_wait.as_micros().saturating_mul(rate.amount.into());
    let units = product.checked_div(rate.period_us.into()).unwrap_or(0);
    u64::try_from(units).unwrap_or(u64::MAX)
}

/// Reports that `max_wait` allows more waiting units than can be counted in addition to the burst.
fn too_many_places(text: &str, rate: RateText, nearest: u64) -> ConfigFault {
    let product = u128::from(nearest).saturating_mul(rate.period_us.into());
    let micros = product.checked_div(rate.amount.into()).unwrap_or(0);
    let message = "more come free in `max_wait` than can be counted";
    let fault = ConfigFault::new(format!("{}: {message}", ConfigFault::quote(text)));
    fault.help(format!("`max_wait: {}ms` fits", micros / 1_000))
}

/// Explains why a rate cannot be represented, and suggests the nearest one that can.
fn unrepresentable(
    text: &str,
    rate: RateText,
    counting: BandDefaults,
    error: QuotaError,
) -> ConfigFault {
    if let (QuotaError::OverdraftTooLarge { nearest }, Some(_)) = (error, counting.max_wait) {
        return too_many_places(text, rate, nearest);
    }
    let fault = ConfigFault::new(format!("{}: {error}", ConfigFault::quote(text)));
    let rate_alone = text.split("burst").next().unwrap_or(text).trim();
    let period = rate_alone
        .split_once('/')
        .map_or("s", |(_, period)| period.trim());
    match error {
        QuotaError::TooLarge { nearest } if counting.algorithm == Algorithm::TokenBucket => {
            fault.help(format!("`{rate_alone} burst {nearest}` fits"))
        }
        QuotaError::TooLarge { nearest } if nearest > 0 => {
            fault.help(format!("`{nearest}/{period}` fits"))
        }
        QuotaError::LogTooLong { nearest } => fault.help(format!(
            "`{nearest}/{period}` fits; or use `algorithm: bucketed-window`"
        )),
        QuotaError::BurstOnWindow => fault.help(format!(
            "write `{rate_alone}`, or use `algorithm: token-bucket`"
        )),
        QuotaError::NoBurst => fault.help(format!("write `{rate_alone}`")),
        QuotaError::BurstWithoutRate => fault.help(format!("write `{}/{period}`", rate.amount)),
        QuotaError::ScaledLog => {
            fault.help("keep what was used, or begin anew when numbers change")
        }
        QuotaError::PeriodTooLong => fault.help("the longest period that fits is 104249d"),
        QuotaError::NoPeriod => fault.help("for example `10/s`"),
        _ => fault,
    }
}

/// Reports a band with the same identity as an earlier band of the limit. A band's identity is its
/// label, otherwise its period.
fn refuse_twin(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    earlier: &[Band],
    band: &Band,
) {
    let same = |other: &&Band| {
        let same_name = match (&other.label, &band.label) {
            (Some(a), Some(b)) => a == b,
            (None, None) => other.quota.period_us() == band.quota.period_us(),
            _ => false,
        };
        // The number that identifies a band in every store may collide, however unlikely.
        same_name || other.quota.id() == band.quota.id()
    };
    let Some(twin) = earlier.iter().find(same) else {
        return;
    };
    let what = match (&twin.label, &band.label) {
        (Some(_), Some(_)) => "label",
        _ => "period",
    };
    let message = format!(
        "bands `{}` and `{}` have the same {what}",
        twin.text, band.text
    );
    let help = match what {
        "label" => "give each band a label of its own".to_owned(),
        _ => format!(
            "tell them apart by a label: {{ rate: {}, label: NAME }}",
            band.text
        ),
    };
    reader.error(value.spot(), ConfigFault::new(message).help(help));
}
