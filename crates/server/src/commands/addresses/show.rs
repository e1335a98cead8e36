//! The busiest addresses, for people.

use super::report::{AddressReport, AddressRow};
use crate::simulate::table::{TextTable, grouped};
use tidegate_policy::text::counted as number;

pub(super) fn text(sight: &AddressReport) -> String {
    let AddressReport {
        period_map,
        total_map,
        threshold,
        closed,
        counted,
        ..
    } = sight;
    let ends = match sight.closes_in_ms {
        Some(left) => format!("closes in {} s", left.div_ceil(1_000)),
        None => "not started".to_owned(),
    };
    let mut text = format!(
        "period     {period_map}, {ends}; {} in it lead to a ban\n\
         all time   {total_map}; {} in {}\n\n",
        number(threshold, "request", "requests"),
        number(counted, "request", "requests"),
        number(closed, "period", "periods"),
    );
    if sight.addresses.is_empty() {
        text.push_str("no requests were counted");
        return text;
    }
    let mut table = TextTable::new(["address", "", "this period", "all time"], 2);
    for line in &sight.addresses {
        table.row([
            line.address.clone(),
            describe_state(line),
            grouped(line.period),
            grouped(line.total),
        ]);
    }
    text.push_str(&table.show());
    text
}

fn describe_state(line: &AddressRow) -> String {
    match (line.banned, line.ends_in_ms) {
        (false, _) => String::new(),
        (true, None) => "banned".to_owned(),
        (true, Some(left)) => format!("banned for {} s more", left.div_ceil(1_000)),
    }
}
