//! Reads the busiest addresses, and their bans.

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use tidegate_control::failure::Failure;
use tidegate_policy::KeyPart;
use tidegate_policy::addresses::AddressLimits;
use tidegate_policy::guard::{GuardMembers, GuardMembersBuilder};
use tidegate_policy::limit::AddressRules;
use tidegate_redis_client::Connection;
use tidegate_redis_shared::{Bans, Census, CensusLimits, CensusMap, CensusNames, RedisSets};

/// The maximum number of bans to read.
pub(super) const ENDS_MAX: usize = 1_000_000;

/// The timeout for reading them.
pub(super) const TIME_MAX: Duration = Duration::from_secs(30);

/// The report.
#[derive(Debug, Serialize)]
pub(super) struct AddressReport {
    /// The names of the maps.
    pub(super) period_map: String,
    pub(super) total_map: String,
    /// An address with this many requests in a period is banned.
    pub(super) threshold: u64,
    /// The number of completed periods, and of requests counted in them.
    pub(super) closed: u64,
    pub(super) counted: u64,
    /// The time until the current period ends.
    pub(super) closes_in_ms: Option<u64>,
    /// The busiest addresses, in this period or in total.
    pub(super) addresses: Vec<AddressRow>,
}

/// The counts and the ban of an address.
#[derive(Debug, Default, Serialize)]
pub(super) struct AddressRow {
    pub(super) address: String,
    pub(super) period: u64,
    pub(super) total: u64,
    pub(super) banned: bool,
    /// The remaining time of the ban; `None` if it is permanent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ends_in_ms: Option<u64>,
}

pub(super) async fn look(
    connection: &Connection,
    counted: &AddressLimits,
    banned: Option<(&str, AddressRules)>,
    top: usize,
) -> Result<AddressReport, Failure> {
    let names = CensusNames {
        period: counted.period_map.clone(),
        total: counted.total_map.clone(),
    };
    let limits = CensusLimits {
        period_max: counted.max_addresses,
        total_max: counted.max_addresses,
        total_lasts: counted.total_lasts,
    };
    let census = Census::new(connection.clone(), &names, limits);
    let figures = census.figures().await.map_err(Failure::runtime)?;
    let mut lines = BTreeMap::new();
    for map in [CensusMap::Period, CensusMap::Total] {
        let most = census.top(map, top).await.map_err(Failure::runtime)?;
        for (address, _) in most {
            let line = AddressRow::of(&address);
            lines.insert(address, line);
        }
    }
    // An address that is among the busiest in one map may not be in the other, and is shown with both
    // counts.
    let found: Vec<&[u8]> = lines.keys().map(Vec::as_slice).collect();
    let of = |map| census.counts(map, &found);
    let period = of(CensusMap::Period).await.map_err(Failure::runtime)?;
    let total = of(CensusMap::Total).await.map_err(Failure::runtime)?;
    for (line, (period, total)) in lines.values_mut().zip(period.into_iter().zip(total)) {
        (line.period, line.total) = (period, total);
    }
    if let Some(banned) = banned {
        mark_banned(connection, banned, &mut lines).await?;
    }
    let mut addresses: Vec<AddressRow> = lines.into_values().collect();
    addresses.sort_by_key(|line| Reverse((line.period, line.total)));
    Ok(AddressReport {
        period_map: names.period,
        total_map: names.total,
        threshold: counted.threshold,
        closed: figures.closed,
        counted: figures.counted,
        closes_in_ms: figures.due.map(millis),
        addresses,
    })
}

impl AddressRow {
    fn of(address: &[u8]) -> Self {
        Self {
            address: String::from_utf8_lossy(address).into_owned(),
            ..Self::default()
        }
    }
}

/// Marks banned addresses, with the end of each ban.
async fn mark_banned(
    connection: &Connection,
    banned: (&str, AddressRules),
    lines: &mut BTreeMap<Vec<u8>, AddressRow>,
) -> Result<(), Failure> {
    let list = list(connection, banned).await?;
    for line in lines.values_mut() {
        let Some(first) = first_of(&line.address) else {
            continue;
        };
        line.banned = list.contains_address(first);
        line.ends_in_ms = list.end_of(first);
    }
    Ok(())
}

/// Reads the banned addresses like the guard, in any form in which they were added by hand. Ends are in
/// milliseconds from now.
pub(super) async fn list(
    connection: &Connection,
    (set, rules): (&str, AddressRules),
) -> Result<GuardMembers, Failure> {
    let bans = Bans::new(connection.clone(), set);
    let ends = bans.ends(ENDS_MAX, TIME_MAX).await;
    let ends: BTreeMap<_, _> = ends.map_err(Failure::runtime)?.into_iter().collect();
    let sets = RedisSets::new(connection.clone());
    let members = sets.members(set.as_bytes(), ENDS_MAX, TIME_MAX).await;
    let mut list = GuardMembersBuilder::new(&KeyPart::Ip, rules);
    for member in members.map_err(Failure::runtime)? {
        let end = ends.get(&member).copied().map(millis);
        match std::str::from_utf8(&member) {
            Ok(text) => list.push_until(text, end),
            Err(_) => list.skip(),
        }
    }
    Ok(list.finish())
}

/// Returns the first address of a map's entry, which is an address or a network.
pub(super) fn first_of(name: &str) -> Option<IpAddr> {
    let address = name.split_once('/').map_or(name, |(address, _)| address);
    address.parse().ok()
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
