//! What a plan has for whom a bucket is.

use tidegate_policy::plan::{Found, Given, Of, Table};
use tidegate_policy::{Band, KeyPart, Limit};

/// What a plan says of a bucket.
#[derive(Debug)]
pub(super) struct Planned {
    /// The band by which it is counted.
    pub(super) band: Band,
    /// What a refusal closes the limit by, if it does.
    pub(super) block: Option<Band>,
}

/// What its plan says of a bucket of `limit`; `None` where that is what the limit itself says. `told` is
/// the subject of the plan, where it was told, and `subject` whose bucket it is.
pub(super) fn planned(
    limit: &Limit,
    told: Option<&str>,
    subject: &str,
    table: &Table,
) -> Option<Planned> {
    let found = find(limit, told, subject, table)?;
    match found.given {
        Given::Rate(number) => {
            let rate = table.rates().get(usize::try_from(number).ok()?)?;
            Some(Planned {
                band: limit.planned_band(*rate).ok()?,
                block: limit.planned_block(*rate).ok()?,
            })
        }
        Given::Unlimited | Given::Nothing => None,
    }
}

fn find<'t>(
    limit: &Limit,
    told: Option<&str>,
    subject: &str,
    table: &'t Table,
) -> Option<Found<'t>> {
    let plan = limit.plan.as_ref()?;
    let own = part(limit, &plan.subject, subject);
    match (told.map(str::to_owned).or(own), plan.of) {
        (Some(whose), Of::Subject) => table.get(&whose),
        (Some(whose), Of::Group) => table.group_of(&whose),
        (None, Of::Group) => table.group(&part(limit, &KeyPart::Group, subject)?),
        (None, Of::Subject) => None,
    }
}

/// The value of one part of whose bucket it is, unless it stands there as a hash.
fn part(limit: &Limit, wanted: &KeyPart, subject: &str) -> Option<String> {
    let at = limit.key.iter().position(|part| part == wanted)?;
    let (_, value) = subject.split(',').nth(at)?.split_once(':')?;
    if value.starts_with('#') {
        return None;
    }
    unescape(value)
}

/// Text as it was before `%` and two digits stood for what would have meant something else.
fn unescape(text: &str) -> Option<String> {
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
