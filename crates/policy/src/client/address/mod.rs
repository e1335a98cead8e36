//! The address of a client behind proxies.
//!
//! A list of addresses is read from its end, where the nearest proxy wrote, through all trusted proxies.
//! Everything before the first address that is not a trusted proxy may have been forged by the client at that
//! address.

mod forwarded;
mod list;
mod node;

use super::{Client, Headers};
use forwarded::node_of;
use list::{elements, quoted_elements};
use node::node;
use smallvec::SmallVec;
use std::net::IpAddr;

/// The maximum number of addresses that are read, from the last.
const HOPS_MAX: usize = 32;

/// A header in which proxies report the client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressHeader {
    /// A list of addresses, one from each proxy.
    XForwardedFor,
    /// RFC 7239.
    Forwarded,
    /// One address.
    XRealIp,
}

impl AddressHeader {
    pub(crate) const ALL: [Self; 3] = [Self::XForwardedFor, Self::Forwarded, Self::XRealIp];

    /// Returns the name of the header, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
            Self::XRealIp => "x-real-ip",
        }
    }
}

/// Returns the address of the client behind `peer`, a trusted proxy. The first of the configured headers that
/// the request carries determines it; without any, it is the address of the proxy.
pub(super) fn behind<'a>(client: &Client, peer: IpAddr, headers: impl Headers<'a>) -> IpAddr {
    // Most requests have none of them.
    if !headers.may_have(&AddressHeader::ALL.map(AddressHeader::name)) {
        return peer.to_canonical();
    }
    let chosen = client.address.iter();
    let mut addresses = chosen.filter_map(|header| walk_header(client, peer, *header, headers));
    addresses.next().unwrap_or_else(|| peer.to_canonical())
}

/// Returns the client's address according to one header, or `None` if the request does not carry the header.
pub(super) fn walk_header<'a>(
    client: &Client,
    peer: IpAddr,
    header: AddressHeader,
    headers: impl Headers<'a>,
) -> Option<IpAddr> {
    let lines: SmallVec<[&[u8]; 4]> = headers.values(header.name()).collect();
    if lines.is_empty() {
        return None;
    }
    // Several lines form one list, in order.
    let lines = lines.iter().rev();
    Some(match header {
        AddressHeader::XForwardedFor => {
            let hops = lines.flat_map(|line| elements(line)).map(node);
            walk(client, peer, hops)
        }
        AddressHeader::Forwarded => {
            let hops = lines.flat_map(|line| quoted_elements(line)).map(node_of);
            walk(client, peer, hops)
        }
        // With two values, the one that the proxy wrote is unknown.
        AddressHeader::XRealIp if lines.len() > 1 => peer.to_canonical(),
        AddressHeader::XRealIp => walk(client, peer, lines.map(|line| node(line.trim_ascii()))),
    })
}

/// Walks back from the connected peer and returns the first address that is not a trusted proxy. Where a
/// proxy reports something other than an address, returns the address of that proxy.
fn walk(client: &Client, peer: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
    let mut found = peer.to_canonical();
    for hop in hops.take(HOPS_MAX) {
        if !client.trusts(found) {
            break;
        }
        match hop {
            Some(address) => found = address,
            None => break,
        }
    }
    found
}
