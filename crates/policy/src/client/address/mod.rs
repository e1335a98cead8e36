//! The client behind proxies.
//!
//! A list of addresses is read from its end, where the nearest proxy wrote, and as far as trusted
//! proxies reach: whatever stands before the first address that is not one of theirs may have been
//! made up by whoever is at that address.

mod forwarded;
mod list;
mod node;

use super::{Client, Headers};
use forwarded::node_of;
use list::{elements, quoted_elements};
use node::node;
use smallvec::SmallVec;
use std::net::IpAddr;

/// How many addresses are looked at, from the last.
const HOPS_MAX: usize = 32;

/// A header by which proxies tell whom they speak for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressHeader {
    /// A list of addresses, one by each proxy.
    XForwardedFor,
    /// RFC 7239.
    Forwarded,
    /// One address.
    XRealIp,
}

impl AddressHeader {
    pub(crate) const ALL: [Self; 3] = [Self::XForwardedFor, Self::Forwarded, Self::XRealIp];

    /// Its name, in lower case.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
            Self::XRealIp => "x-real-ip",
        }
    }
}

/// The client for which `peer`, a trusted proxy, speaks: as the first of the chosen headers says that
/// the request carries; else the proxy itself.
pub(super) fn behind<'a>(client: &Client, peer: IpAddr, headers: impl Headers<'a>) -> IpAddr {
    let chosen = client.address.iter();
    let mut told = chosen.filter_map(|header| walk_header(client, peer, *header, headers));
    told.next().unwrap_or_else(|| peer.to_canonical())
}

/// As one header tells it; `None` where the request does not carry it.
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
    // Several lines are one list, in order.
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
        // Of two, who is to say which one the proxy wrote?
        AddressHeader::XRealIp if lines.len() > 1 => peer.to_canonical(),
        AddressHeader::XRealIp => walk(client, peer, lines.map(|line| node(line.trim_ascii()))),
    })
}

/// Going back from the proxy that was seen, the first address that is not a trusted proxy's. Where
/// one of them names something that is no address, it is itself as far as anybody can tell.
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
