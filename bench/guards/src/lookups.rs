//! Lookups in lists of several lengths.

use crate::Plan;
use crate::world::{self, BLOCKED, STRANGERS};
use anyhow::ensure;
use std::net::IpAddr;
use tidegate_bench_measure::{self as measure, Summary};
use tidegate_policy::guard::GuardMembers;
use tidegate_policy::limit::{AddressRules, KeyPart};

/// The number of lookups before they repeat.
const LOOKUPS: usize = 1 << 19;

/// Lookups between two reads of the clock.
const CHUNK: usize = 1_024;

/// The result of one list.
#[derive(serde::Serialize)]
pub(crate) struct Row {
    of: &'static str,
    members: usize,
    hit_ns: Summary,
    miss_ns: Summary,
}

/// A list, and the values that are looked up in it.
struct ListLookup {
    list: GuardMembers,
    members: usize,
    questions: Questions,
    at: usize,
}

/// Listed and unlisted values, in order, so that they stay in the cache and only the list does not.
enum Questions {
    Ids([String; 2]),
    Addresses([Vec<IpAddr>; 2]),
}

impl ListLookup {
    fn ids(members: usize) -> Self {
        let ids = world::ids(BLOCKED, members);
        let listed = (0..members).map(|nth| world::id(&ids, nth));
        let attribute = KeyPart::Attr("project".to_owned());
        let drawn = (0..LOOKUPS).map(|nth| world::id(&ids, world::one_of(members, 5, nth)));
        let hits = drawn.collect();
        Self {
            list: GuardMembers::new(&attribute, AddressRules::default(), listed),
            members,
            questions: Questions::Ids([hits, world::ids(STRANGERS, LOOKUPS)]),
            at: 0,
        }
    }

    fn addresses(members: usize) -> Self {
        let lines = world::address_lines(members);
        let hit = |nth| world::listed_address(world::one_of(members, 5, nth));
        let hits = (0..LOOKUPS).map(hit).collect();
        let misses = (0..LOOKUPS).map(world::strange_address).collect();
        Self {
            list: GuardMembers::new(&KeyPart::Ip, AddressRules::default(), lines.lines()),
            members,
            questions: Questions::Addresses([hits, misses]),
            at: 0,
        }
    }

    /// Returns how many of the next values are listed.
    fn look(&mut self, misses: usize) -> usize {
        let range = self.at..self.at + CHUNK;
        self.at = range.end % LOOKUPS;
        let list = &self.list;
        match &self.questions {
            Questions::Ids(ids) => {
                let ids = ids.get(misses).map_or("", |it| it);
                range
                    .filter(|nth| list.contains(world::id(ids, *nth)))
                    .count()
            }
            Questions::Addresses(addresses) => {
                let addresses = addresses.get(misses).and_then(|it| it.get(range));
                let addresses = addresses.unwrap_or_default().iter();
                addresses.filter(|it| list.contains_address(**it)).count()
            }
        }
    }
}

pub(crate) fn run(plan: Plan) -> anyhow::Result<Vec<Row>> {
    measure::pin(0);
    let lengths = [1_000, 100_000, plan.most];
    let ids = lengths.map(ListLookup::ids);
    let mut all: Vec<_> = ids
        .into_iter()
        .chain(lengths.map(ListLookup::addresses))
        .collect();
    let mut samples = vec![[Vec::new(), Vec::new()]; all.len()];
    for _ in 0..plan.reps {
        for (looked, samples) in all.iter_mut().zip(&mut samples) {
            for (misses, samples) in samples.iter_mut().enumerate() {
                let expected = if misses == 0 { CHUNK } else { 0 };
                let mut is_wrong = false;
                samples.push(measure::ns_each(plan.span / 4, || {
                    is_wrong |= looked.look(misses) != expected;
                    CHUNK
                }));
                ensure!(!is_wrong, "a list does not say who is listed");
            }
        }
    }
    println!("\na lookup; an id of 24 bytes, or an address among networks of 5 lengths");
    println!(
        "  {:10} {:>9} {:>8} {:>6} {:>8} {:>6}",
        "", "members", "hit ns", "±", "miss ns", "±"
    );
    let rows = all
        .iter()
        .zip(&samples)
        .map(|(looked, [hits, misses])| Row {
            of: match looked.questions {
                Questions::Ids(_) => "ids",
                Questions::Addresses(_) => "addresses",
            },
            members: looked.members,
            hit_ns: Summary::of(hits.iter().copied()),
            miss_ns: Summary::of(misses.iter().copied()),
        });
    let rows: Vec<_> = rows.collect();
    for row in &rows {
        let (hit, miss) = (row.hit_ns, row.miss_ns);
        println!(
            "  {:10} {:>9} {:>8.1} {:>5.0}% {:>8.1} {:>5.0}%",
            row.of,
            row.members,
            hit.median,
            hit.spread(),
            miss.median,
            miss.spread()
        );
    }
    Ok(rows)
}
