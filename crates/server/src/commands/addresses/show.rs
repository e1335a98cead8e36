//! The busiest addresses, for people.

use super::look::{AddressReport, AddressRow};
use crate::simulate::table::{TextTable, grouped};

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
        None => "not begun".to_owned(),
    };
    let mut text = format!(
        "period   {period_map}, {ends}; who asks {threshold} times in it is banned\n\
         in all   {total_map}; {counted} requests in {closed} periods so far\n\n"
    );
    if sight.addresses.is_empty() {
        text.push_str("nobody has asked");
        return text;
    }
    let mut table = TextTable::new(["address", "", "this period", "in all"], 2);
    for line in &sight.addresses {
        table.row([
            line.address.clone(),
            standing(line),
            grouped(line.period),
            grouped(line.total),
        ]);
    }
    text.push_str(&table.show());
    text
}

fn standing(line: &AddressRow) -> String {
    match (line.banned, line.ends_in_ms) {
        (false, _) => String::new(),
        (true, None) => "banned".to_owned(),
        (true, Some(left)) => format!("banned for {} s more", left.div_ceil(1_000)),
    }
}
