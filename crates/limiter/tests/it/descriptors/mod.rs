//! Requests that a proxy describes: decided atomically or per limit, and the report of each
//! descriptor.

/// Limits that are decided separately, and quotas of which one is enough.
mod each;
/// Descriptors if the store does not answer.
mod failure;
/// The limiter compared with the model, over memory and over Redis.
mod like_the_model;
/// A model that counts in windows, with the rules in plain words.
mod model;
/// Testing without consuming, and reporting usage.
mod test_and_report;
/// The meaning of each setting alone.
mod words;

use tidegate::{
    Config, Decision, Descriptor, DescriptorHits, Limiter, ManualClock, MemoryStore, Request,
};
use tidegate::{LimitOverride, Timestamp};

/// The start of a day, so that no window ends during a test.
pub(super) const START_S: u64 = 1_699_920_000;

pub(super) type Local = Limiter<MemoryStore<ManualClock>>;

/// Returns a limiter in memory, and its clock.
pub(super) fn limiter(yaml: &str) -> (Local, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_millis(START_S * 1_000));
    let config = Config::from_yaml(yaml).unwrap_or_else(|errors| panic!("{errors}"));
    let builder = Limiter::builder().config(config).clock(clock.clone());
    (builder.build().expect("a limiter"), clock)
}

/// Returns a policy of these limits, with windows aligned to the clock.
pub(super) fn policy(evaluate: &str, limits: &[&str]) -> String {
    let head = format!("policies:\n  - name: edge\n    evaluate: {evaluate}\n    limits:\n");
    let limits = limits.iter();
    let lines = limits
        .map(|limit| format!("      - {{ algorithm: fixed-window, align: clock, {limit} }}\n"));
    head + &lines.collect::<String>()
}

pub(super) const USER: &str =
    "name: user, match: { descriptor: [user] }, key: 'descriptor:user', rate: 5/h";
pub(super) const TENANT: &str =
    "name: tenant, match: { descriptor: [tenant] }, key: 'descriptor:tenant', rate: 2/h";

/// Returns a descriptor with the cost of the request.
pub(super) const fn of<'a>(entries: &'a [(&'a str, &'a str)]) -> Descriptor<'a> {
    Descriptor {
        entries,
        hits: DescriptorHits::AsRequest,
        limit: None,
    }
}

pub(super) const ANN: Descriptor<'_> = of(&[("user", "ann")]);
pub(super) const BOB: Descriptor<'_> = of(&[("user", "bob")]);
pub(super) const ACME: Descriptor<'_> = of(&[("tenant", "acme")]);

pub(super) const fn hits<'a>(
    descriptor: Descriptor<'a>,
    hits: DescriptorHits<'a>,
) -> Descriptor<'a> {
    Descriptor { hits, ..descriptor }
}

pub(super) const fn bringing(descriptor: Descriptor<'_>, amount: u64) -> Descriptor<'_> {
    let limit = Some(LimitOverride {
        amount,
        period_us: 3_600_000_000,
    });
    Descriptor {
        limit,
        ..descriptor
    }
}

pub(super) fn ask(limiter: &Local, descriptors: &[Descriptor<'_>]) -> Decision {
    let request = Request::new().descriptors(descriptors);
    limiter.check_now(&request).expect("memory answers")
}

/// Returns the remaining units of each descriptor's limit, without consuming anything; `None` if none
/// applies.
pub(super) fn remaining(limiter: &Local, descriptors: &[Descriptor<'_>]) -> Vec<Option<u64>> {
    let request = Request::new().cost(0).descriptors(descriptors);
    let decision = limiter.check_now(&request).expect("memory answers");
    let told = (0..descriptors.len()).map(|nth| decision.descriptor(nth));
    told.map(|band| band.map(|band| band.remaining())).collect()
}
