//! Addresses in the format of keys.

use crate::address_rules::AddressRules;
use crate::patterns::escape::hex;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Appends the address that `address` counts as: `192.0.2.1`, `2001:db8::/64`.
///
/// Written by hand: nearly every request needs it, and `std::fmt` would take longer than all the other work.
pub(super) fn push_address(text: &mut String, address: IpAddr, rules: AddressRules) {
    match rules.subject(address) {
        IpAddr::V4(v4) => push_v4(text, v4),
        IpAddr::V6(v6) => {
            push_v6(text, v6);
            if rules.ipv6_prefix < 128 {
                text.push('/');
                push_decimal(text, rules.ipv6_prefix);
            }
        }
    }
}

fn push_v4(text: &mut String, address: Ipv4Addr) {
    for (i, octet) in address.octets().into_iter().enumerate() {
        if i > 0 {
            text.push('.');
        }
        push_decimal(text, octet);
    }
}

/// Appends an address in the format of RFC 5952: lower case, no leading zeros, `::` for the longest run of
/// two or more zero groups, the first one if several are equal.
fn push_v6(text: &mut String, address: Ipv6Addr) {
    let groups = address.segments();
    let (gap_start, gap_len) = longest_gap(&groups);
    for (i, group) in groups.into_iter().enumerate() {
        if (gap_start..gap_start + gap_len).contains(&i) {
            if i == gap_start {
                text.push_str("::");
            }
            continue;
        }
        if i > 0 && i != gap_start + gap_len {
            text.push(':');
        }
        push_group(text, group);
    }
}

/// Returns the start and the length of the zero groups that `::` replaces.
fn longest_gap(groups: &[u16; 8]) -> (usize, usize) {
    let (mut best_start, mut best_len) = (groups.len(), 0);
    let mut len = 0;
    for (i, group) in groups.iter().enumerate() {
        len = if *group == 0 { len + 1 } else { 0 };
        if len > best_len && len > 1 {
            (best_start, best_len) = (i + 1 - len, len);
        }
    }
    (best_start, best_len)
}

fn push_group(text: &mut String, group: u16) {
    let [high, low] = group.to_be_bytes();
    let digits = [high >> 4, high & 15, low >> 4];
    let mut is_leading = true;
    for digit in digits {
        is_leading &= digit == 0;
        if !is_leading {
            text.push(hex(digit));
        }
    }
    text.push(hex(low & 15));
}

fn push_decimal(text: &mut String, number: u8) {
    if number >= 100 {
        text.push(hex(number / 100));
    }
    if number >= 10 {
        text.push(hex(number / 10 % 10));
    }
    text.push(hex(number % 10));
}
