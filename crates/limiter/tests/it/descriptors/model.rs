//! The expected result of a call with descriptors, by a model that is independent of the limiter: counts in
//! windows, and the rules in plain words.

use std::collections::BTreeMap;

pub(super) const HOUR: u64 = 3_600;
pub(super) const DAY: u64 = 24 * HOUR;

/// The evaluation mode of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evaluate {
    All,
    First,
    Each,
}

/// Returns the policy of these tests; [`Rule::all`] repeats it.
pub(super) fn config(evaluate: Evaluate) -> String {
    let (word, quota) = match evaluate {
        Evaluate::All => ("all", ""),
        Evaluate::First => ("first", ""),
        Evaluate::Each => ("each", ", combine: any"),
    };
    let count = "algorithm: fixed-window, align: clock";
    format!(
        "
policies:
  - name: edge
    evaluate: {word}
    limits:
      - {{ name: whole, rate: 40/h, {count} }}
      - {{ name: user, match: {{ descriptor: [user] }}, key: 'descriptor:user', rate: 5/h, {count} }}
      - {{ name: vip, match: {{ descriptor: [user: vip] }}, key: global, rate: 9/h, {count} }}
      - {{ name: both, match: {{ descriptor: [plan, user] }}, key: descriptor, bands: [4/h, 6/d], {count} }}
      - {{ name: tenant, match: {{ descriptor: [tenant] }}, key: 'descriptor:tenant', rate: 6/h, {count} }}
      - {{ name: tenant-too, match: {{ descriptor: [tenant] }}, key: 'descriptor:tenant', rate: 8/h, {count} }}
      - {{ name: free, match: {{ descriptor: [tenant: free] }}, rate: unlimited, replaces: [user] }}
      - {{ name: big, match: {{ descriptor: [tenant: big] }}, key: global, rate: 12/h, replaces: [both], {count} }}
      - {{ name: watched, match: {{ descriptor: [watch] }}, key: global, rate: 3/h, mode: shadow, {count} }}
      - {{ name: pool-a, match: {{ descriptor: [pool: a] }}, key: global, rate: 2/h{quota}, {count} }}
      - {{ name: pool-b, match: {{ descriptor: [pool: b] }}, key: global, rate: 4/h{quota}, {count} }}
"
    )
}

/// A limit of the policy.
#[derive(Clone, Debug)]
struct Rule {
    name: &'static str,
    /// Amounts and periods in seconds; none is unlimited.
    bands: Vec<(u64, u64)>,
    is_shadow: bool,
    is_quota: bool,
    replaces: &'static [&'static str],
}

impl Rule {
    fn new(name: &'static str, bands: &[(u64, u64)]) -> Self {
        Self {
            name,
            bands: bands.to_vec(),
            is_shadow: false,
            is_quota: false,
            replaces: &[],
        }
    }

    fn named(name: &'static str, evaluate: Evaluate) -> Self {
        let hourly = |amount| Self::new(name, &[(amount, HOUR)]);
        match name {
            "whole" => hourly(40),
            "user" => hourly(5),
            "vip" => hourly(9),
            "both" => Self::new(name, &[(4, HOUR), (6, DAY)]),
            "tenant" => hourly(6),
            "tenant-too" => hourly(8),
            "free" => Self {
                replaces: &["user"],
                ..Self::new(name, &[])
            },
            "big" => Self {
                replaces: &["both"],
                ..hourly(12)
            },
            "watched" => Self {
                is_shadow: true,
                ..hourly(3)
            },
            _ => Self {
                is_quota: evaluate == Evaluate::Each,
                ..hourly(if name == "pool-a" { 2 } else { 4 })
            },
        }
    }
}

/// The hits that a descriptor requests.
#[derive(Clone, Copy, Debug)]
pub(super) enum HitRequest {
    Whole,
    Take(u64),
    Back(u64),
}

/// A descriptor: its entries, its hits, and the amount per hour of the limit that it carries.
#[derive(Clone, Debug)]
pub(super) struct DescriptorInput {
    pub(super) entries: Vec<(&'static str, &'static str)>,
    pub(super) want: HitRequest,
    pub(super) brings: Option<u64>,
}

/// A call: its cost, its descriptors, and the seconds since the last call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) cost: u64,
    pub(super) said: Vec<DescriptorInput>,
    pub(super) after_s: u64,
}

/// The reported result of a descriptor, or of the whole call: allowed or not, the reported limit and its
/// remaining units, and true if it is unlimited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DescriptorResult {
    pub(super) allowed: bool,
    pub(super) reported: Option<(String, u64)>,
    pub(super) unlimited: bool,
}

/// A matched limit.
struct MatchedLimit {
    rule: Rule,
    subject: String,
    of: Option<usize>,
    op: Op,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Look,
    Test,
    Take(u64),
    Back(u64),
}

/// The outcome of one band of a matched limit.
#[derive(Clone)]
struct Line {
    met: usize,
    /// 0 passes; a longer wait is a larger number.
    wait: u64,
    remaining: u64,
}

/// The counts so far.
#[derive(Default)]
pub(super) struct Model {
    /// The window and its count, by limit, subject and band.
    used: BTreeMap<(String, String, usize), (u64, u64)>,
    now_s: u64,
}

impl Model {
    pub(super) fn at(now_s: u64) -> Self {
        Self {
            now_s,
            ..Self::default()
        }
    }

    /// Returns the result of a call: the whole, and each descriptor.
    pub(super) fn decide(
        &mut self,
        call: &Call,
        evaluate: Evaluate,
    ) -> (DescriptorResult, Vec<DescriptorResult>) {
        self.now_s += call.after_s;
        let mut met = vec![MatchedLimit {
            rule: Rule::named("whole", evaluate),
            subject: String::new(),
            of: None,
            op: if call.cost == 0 {
                Op::Look
            } else {
                Op::Take(call.cost)
            },
        }];
        for (nth, said) in call.said.iter().enumerate() {
            meet(said, nth, call.cost, evaluate, &mut met);
        }
        let replaced: Vec<&str> = met
            .iter()
            .flat_map(|it| it.rule.replaces)
            .copied()
            .collect();
        met.retain(|it| !replaced.contains(&it.rule.name));
        let (lines, allowed) = if evaluate == Evaluate::Each {
            self.one_by_one(&met)
        } else {
            self.together(&met)
        };
        let each = (0..call.said.len())
            .map(|nth| descriptor_result(nth, &met, &lines))
            .collect();
        (result_of(allowed, &met, &lines), each)
    }

    /// Decides all or nothing; refunds come first, in any case.
    fn together(&mut self, met: &[MatchedLimit]) -> (Vec<Line>, bool) {
        for it in met {
            self.refund_charge(it);
        }
        let mut lines = Vec::new();
        for (nth, it) in met.iter().enumerate() {
            for band in 0..it.rule.bands.len() {
                // In the same bucket, earlier limits consume first, and shadow limits last.
                let before: u64 = met
                    .iter()
                    .enumerate()
                    .filter(|(other, that)| {
                        let same = (that.rule.name, &that.subject) == (it.rule.name, &it.subject);
                        let comes_first = match (that.rule.is_shadow, it.rule.is_shadow) {
                            (false, true) => true,
                            (true, false) => false,
                            _ => *other < nth,
                        };
                        same && comes_first
                    })
                    .map(|(_, that)| cost(that.op))
                    .sum();
                let wait = self.wait(it, band, before);
                lines.push(Line {
                    met: nth,
                    wait,
                    remaining: 0,
                });
            }
        }
        let refuses = |line: &Line| line.wait > 0 && !met[line.met].rule.is_shadow;
        let allowed = !lines.iter().any(refuses);
        if allowed {
            for (nth, it) in met.iter().enumerate() {
                if lines.iter().all(|line| line.met != nth || line.wait == 0) {
                    self.charge(it);
                }
            }
        }
        self.read(met, &mut lines);
        (lines, allowed)
    }

    /// Decides each limit separately.
    fn one_by_one(&mut self, met: &[MatchedLimit]) -> (Vec<Line>, bool) {
        let mut all = Vec::new();
        for (nth, it) in met.iter().enumerate() {
            self.refund_charge(it);
            let bands = 0..it.rule.bands.len();
            let mut lines: Vec<Line> = bands
                .map(|band| Line {
                    met: nth,
                    wait: self.wait(it, band, 0),
                    remaining: 0,
                })
                .collect();
            if lines.iter().all(|line| line.wait == 0) {
                self.charge(it);
            }
            self.read(met, &mut lines);
            all.extend(lines);
        }
        let refuses = |nth: usize| {
            all.iter()
                .any(|line: &Line| line.met == nth && line.wait > 0)
        };
        let enforced = || (0..met.len()).filter(|nth| !met[*nth].rule.is_shadow);
        let strict = enforced()
            .filter(|nth| !met[*nth].rule.is_quota)
            .any(refuses);
        let quotas: Vec<usize> = enforced().filter(|nth| met[*nth].rule.is_quota).collect();
        let short = !quotas.is_empty() && quotas.iter().all(|nth| refuses(*nth));
        if !short {
            // Quotas that refuse are not part of the whole; see `told`.
            return (all, !strict);
        }
        (all, false)
    }

    fn wait(&mut self, met: &MatchedLimit, band: usize, before: u64) -> u64 {
        let (amount, period_s) = met.rule.bands[band];
        let need = match met.op {
            Op::Look | Op::Back(_) => return 0,
            Op::Test => 1,
            Op::Take(cost) => cost,
        } + before;
        if need > amount {
            return u64::MAX;
        }
        if self.count(met, band) + need > amount {
            return period_s - self.now_s % period_s;
        }
        0
    }

    fn charge(&mut self, met: &MatchedLimit) {
        for band in 0..met.rule.bands.len() {
            self.change(met, band, |count| count + cost(met.op));
        }
    }

    fn refund_charge(&mut self, met: &MatchedLimit) {
        if let Op::Back(units) = met.op {
            for band in 0..met.rule.bands.len() {
                self.change(met, band, |count| count.saturating_sub(units));
            }
        }
    }

    fn read(&mut self, met: &[MatchedLimit], lines: &mut [Line]) {
        let mut band = 0;
        for nth in 0..lines.len() {
            let it = &met[lines[nth].met];
            band = if nth > 0 && lines[nth - 1].met == lines[nth].met {
                band + 1
            } else {
                0
            };
            lines[nth].remaining = it.rule.bands[band].0.saturating_sub(self.count(it, band));
        }
    }

    fn count(&mut self, met: &MatchedLimit, band: usize) -> u64 {
        let mut count = 0;
        self.change(met, band, |known| {
            count = known;
            known
        });
        count
    }

    fn change(&mut self, met: &MatchedLimit, band: usize, change: impl FnOnce(u64) -> u64) {
        let window = self.now_s / met.rule.bands[band].1;
        let name = (met.rule.name.to_owned(), met.subject.clone(), band);
        let (known, count) = self.used.entry(name).or_insert((window, 0));
        if *known != window {
            (*known, *count) = (window, 0);
        }
        *count = change(*count);
    }
}

/// Adds the matched limits of one descriptor.
fn meet(
    said: &DescriptorInput,
    nth: usize,
    cost: u64,
    evaluate: Evaluate,
    met: &mut Vec<MatchedLimit>,
) {
    let op = match said.want {
        HitRequest::Whole if cost == 0 => Op::Look,
        HitRequest::Whole => Op::Take(cost),
        HitRequest::Take(0) => Op::Test,
        HitRequest::Take(units) => Op::Take(units),
        HitRequest::Back(units) => Op::Back(units),
    };
    let all = format!("{:?}", said.entries);
    if let Some(amount) = said.brings {
        met.push(MatchedLimit {
            rule: Rule::new("override", &[(amount, HOUR)]),
            subject: format!("{all} {amount}"),
            of: Some(nth),
            op,
        });
        return;
    }
    let found: &[(&'static str, &str)] = match said.entries[..] {
        [("user", "vip")] => &[("vip", "")],
        [("user", user)] => &[("user", user)],
        [("plan", _), ("user", _)] => &[("both", &all)],
        [("tenant", "free")] => &[("free", "")],
        [("tenant", "big")] => &[("big", "")],
        [("tenant", tenant)] if evaluate == Evaluate::First => &[("tenant", tenant)],
        [("tenant", tenant)] => &[("tenant", tenant), ("tenant-too", tenant)],
        [("watch", _)] => &[("watched", "")],
        [("pool", "a")] => &[("pool-a", "")],
        [("pool", "b")] => &[("pool-b", "")],
        _ => &[],
    };
    met.extend(found.iter().map(|(name, subject)| MatchedLimit {
        rule: Rule::named(name, evaluate),
        subject: (*subject).to_owned(),
        of: Some(nth),
        op,
    }));
}

fn cost(op: Op) -> u64 {
    match op {
        Op::Take(cost) => cost,
        _ => 0,
    }
}

/// Returns the reported one of `lines`: the fewest remaining, or the longest wait; the first of equals.
fn reported<'l>(allowed: bool, lines: impl Iterator<Item = &'l Line>) -> Option<&'l Line> {
    let mut best: Option<&Line> = None;
    for line in lines {
        let is_better = |best: &Line| {
            if allowed {
                line.remaining < best.remaining
            } else {
                line.wait > best.wait
            }
        };
        if best.is_none_or(is_better) {
            best = Some(line);
        }
    }
    best
}

fn result_of(allowed: bool, met: &[MatchedLimit], lines: &[Line]) -> DescriptorResult {
    // If no quota allows, the one with the shortest wait is reported for all.
    let wait = |nth: usize| {
        let of = lines.iter().filter(|line| line.met == nth);
        of.map(|line| line.wait).max().unwrap_or(0)
    };
    let quotas: Vec<usize> = (0..met.len())
        .filter(|nth| met[*nth].rule.is_quota)
        .collect();
    let speaks = quotas.iter().copied().min_by_key(|nth| wait(*nth));
    let speaks = speaks.filter(|nth| wait(*nth) > 0);
    let counts = |line: &&Line| {
        let rule = &met[line.met].rule;
        !rule.is_shadow && (!rule.is_quota || line.wait == 0 || speaks == Some(line.met))
    };
    let line = reported(allowed, lines.iter().filter(counts));
    DescriptorResult {
        allowed,
        reported: line.map(|line| (met[line.met].rule.name.to_owned(), line.remaining)),
        unlimited: false,
    }
}

fn descriptor_result(nth: usize, met: &[MatchedLimit], lines: &[Line]) -> DescriptorResult {
    let is_of = |line: &&Line| met[line.met].of == Some(nth) && !met[line.met].rule.is_shadow;
    let allowed = lines.iter().filter(is_of).all(|line| line.wait == 0);
    let line = reported(allowed, lines.iter().filter(is_of));
    let mut all = met.iter().filter(|it| it.of == Some(nth));
    DescriptorResult {
        allowed,
        reported: line.map(|line| (met[line.met].rule.name.to_owned(), line.remaining)),
        unlimited: line.is_none() && all.any(|it| it.rule.bands.is_empty()),
    }
}
