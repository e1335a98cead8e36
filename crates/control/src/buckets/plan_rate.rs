//! The rate that a plan assigns to a bucket.

use super::identity::{as_written, hash};
use tidegate_policy::plan::{
    GivenShare, PlanShare, PlanTable, PlannedRate, RateOwner, UnknownSubject,
};
use tidegate_policy::{Band, KeyPart, Limit};

/// The rate of a bucket whose limit takes it from a plan.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a command or a call of the admin API has one"
)]
pub(super) enum PlannedBands {
    Rate {
        band: Band,
        /// The block after a refusal, if there is one.
        block: Option<Band>,
    },
    /// The bands of the limit itself, for subjects that the plan does not know.
    Own,
    /// No rate, with the reason.
    None(String),
}

/// Returns the rate of a bucket of `limit`, or `None` if it does not come from a plan. `known` is the
/// subject of the plan if it is known, `subject` the one in the bucket's name, and `table` the loaded
/// plans or the reason why they could not be loaded.
pub(super) fn planned(
    limit: &Limit,
    known: Option<&str>,
    subject: &str,
    table: Result<&PlanTable, &str>,
) -> Option<PlannedBands> {
    let plan = limit.plan.as_ref()?;
    Some(match table {
        Err(why) => PlannedBands::None(format!("unknown: the plans could not be loaded: {why}")),
        Ok(table) => match find(plan, (limit, known, subject), table) {
            Ok(Some(found)) => given(limit, plan, (found.share, table)),
            Ok(None) => match plan.unknown {
                UnknownSubject::Band => PlannedBands::Own,
                UnknownSubject::Unlimited => PlannedBands::None(
                    "none: the plan does not know this subject: unlimited".to_owned(),
                ),
                UnknownSubject::Refuse => PlannedBands::None(
                    "none: the plan does not know this subject: requests are refused".to_owned(),
                ),
                UnknownSubject::Skip => PlannedBands::None(
                    "none: the plan does not know this subject: the limit does not apply"
                        .to_owned(),
                ),
            },
            Err(HiddenSubject) => {
                let part = as_written(&plan.subject);
                PlannedBands::None(format!(
                    "unknown: the plan looks it up by `{part}`, which the bucket's name does not \
                     show. Name the bucket with --limit and --key {part}=…"
                ))
            }
        },
    })
}

fn given(
    limit: &Limit,
    plan: &PlannedRate,
    (share, table): (PlanShare, &PlanTable),
) -> PlannedBands {
    let rate = match share {
        PlanShare::Unlimited => {
            return PlannedBands::None("none: this subject is unlimited".to_owned());
        }
        PlanShare::Nothing => {
            let why = "none: the plan has no rate for this subject: requests are refused";
            return PlannedBands::None(why.to_owned());
        }
        PlanShare::Rate(number) => usize::try_from(number).ok(),
    };
    let Some(rate) = rate.and_then(|number| table.rates(&plan.name).get(number)) else {
        return PlannedBands::None("unknown: the plan has no such rate".to_owned());
    };
    let planned = limit
        .planned_band(*rate)
        .and_then(|band| Ok((band, limit.planned_block(*rate)?)));
    match planned {
        Ok((band, block)) => PlannedBands::Rate { band, block },
        Err(why) => PlannedBands::None(format!(
            "none: this limit cannot count the plan's rate: {why}"
        )),
    }
}

/// The subject of a plan is not known.
struct HiddenSubject;

fn find(
    plan: &PlannedRate,
    (limit, known, subject): (&Limit, Option<&str>, &str),
    table: &PlanTable,
) -> Result<Option<GivenShare>, HiddenSubject> {
    let own = part(limit, &plan.subject, subject);
    match (known.map(str::to_owned).or(own), plan.of) {
        (Some(whose), of) => {
            let found = match of {
                RateOwner::Subject => table.get(&whose),
                RateOwner::Group => table.group_of(&whose),
            };
            // A source that had no such rate when it was loaded knows nothing of it.
            let found = found.and_then(|entry| entry.share(&plan.name));
            // A subject that may be the hash of a secret does not count as unknown to the plan.
            let is_hidden = found.is_none() && plan.hides_subject() && hash(&whose).is_some();
            if is_hidden {
                Err(HiddenSubject)
            } else {
                Ok(found)
            }
        }
        (None, RateOwner::Group) => {
            let group = part(limit, &KeyPart::Group, subject).ok_or(HiddenSubject)?;
            Ok(table.group(&group).and_then(|it| it.share(&plan.name)))
        }
        (None, RateOwner::Subject) => Err(HiddenSubject),
    }
}

/// Returns the value of one part of a bucket's subject, unless it is a hash.
fn part(limit: &Limit, wanted: &KeyPart, subject: &str) -> Option<String> {
    let at = limit.key.iter().position(|part| part == wanted)?;
    let (_, value) = subject.split(',').nth(at)?.split_once(':')?;
    if value.starts_with('#') {
        return None;
    }
    unescape(value)
}

/// Decodes percent-encoding.
pub(super) fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            let digits = str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}
