//! The origin of a request in headers for upstreams: `X-Forwarded-*`, `X-Real-IP`, `Forwarded` and `Via`.
//!
//! Values from a trusted proxy are extended. Values from other clients are replaced, because they may be made
//! up.

use super::hop::{RequestFields, is_trace};
use bytes::Bytes;
use http::header::{self, FORWARDED, HeaderName, VIA};
use http::{HeaderMap, HeaderValue, Version};
use parking_lot::Mutex;
use std::fmt::Write;
use std::net::IpAddr;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// The forwarding headers of all requests on one connection.
#[derive(Debug)]
pub struct ForwardingHeaders {
    peer: HeaderValue,
    proto: HeaderValue,
    /// The headers for the last requested host: clients rarely switch hosts.
    last: Mutex<Option<CachedHeaders>>,
}

/// The forwarding headers of requests for one host.
#[derive(Debug)]
struct CachedHeaders {
    host: HeaderValue,
    version: Version,
    /// The value of `Forwarded`.
    hop: HeaderValue,
    /// All headers, as lines, and `Host` as the last of them.
    lines: Bytes,
    /// The length of the lines without `Host`.
    length: usize,
}

/// Fields as lines of HTTP/1.
#[derive(Clone, Debug, Default)]
pub struct FieldLines {
    /// The lines.
    pub text: Bytes,
    /// True if `Host` is one of them.
    pub has_host: bool,
}

impl ForwardingHeaders {
    /// Creates the headers of a connection from `peer`, with TLS or without.
    pub fn new(peer: IpAddr, is_secure: bool) -> Self {
        let text = peer.to_string();
        Self {
            peer: HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("unknown")),
            proto: HeaderValue::from_static(if is_secure { "https" } else { "http" }),
            last: Mutex::new(None),
        }
    }

    /// Adds the origin of a request to `headers`. `host` is the requested host. `is_trusted` is true if the
    /// peer is a trusted proxy.
    pub fn write(
        &self,
        headers: &mut HeaderMap,
        host: Option<&HeaderValue>,
        version: Version,
        is_trusted: bool,
    ) {
        let forwarded = self.forwarded(host, version);
        let is_told = headers.keys().any(is_trace);
        if is_told && is_trusted {
            append(headers, FOR, &self.peer);
            keep_or(headers, PROTO, Some(&self.proto));
            keep_or(headers, HOST, host);
            // `X-Real-IP` is the client's, which the proxy knows and this connection does not.
            append(headers, FORWARDED, &forwarded);
            append(headers, VIA, &via(version));
            return;
        }
        if is_told {
            let vias = append_to(headers, &VIA, &via(version));
            let names = headers.keys().filter(|name| is_trace(name));
            for name in names.cloned().collect::<Vec<_>>() {
                headers.remove(name);
            }
            headers.insert(VIA, vias);
        } else {
            headers.insert(VIA, via(version));
        }
        headers.insert(FOR, self.peer.clone());
        headers.insert(PROTO, self.proto.clone());
        headers.insert(REAL_IP, self.peer.clone());
        headers.insert(FORWARDED, forwarded);
        match host {
            Some(host) => drop(headers.insert(HOST, host.clone())),
            None => drop(headers.remove(HOST)),
        }
    }

    /// Returns the fields that [`write`](Self::write) would write, as lines of HTTP/1, for a request with
    /// `fields` for `host`. If the request has the host only in its target, and the upstream `keeps_host`,
    /// they include `Host`. Returns `None` if the request itself has forwarding headers.
    pub fn lines(
        &self,
        fields: RequestFields,
        (host, keeps_host): (&[u8], bool),
        version: Version,
    ) -> Option<FieldLines> {
        if fields.has_trace {
            return None;
        }
        let has_host = keeps_host && !fields.has_host;
        self.of(host, version, |last| FieldLines {
            text: if has_host {
                last.lines.clone()
            } else {
                last.lines.slice(..last.length)
            },
            has_host,
        })
    }

    /// Returns this hop in the syntax of RFC 7239.
    fn forwarded(&self, host: Option<&HeaderValue>, version: Version) -> HeaderValue {
        let host = host.map(HeaderValue::as_bytes);
        let hop = host.and_then(|host| self.of(host, version, |last| last.hop.clone()));
        hop.unwrap_or_else(|| self.hop(None))
    }

    /// Calls `what` with the headers of requests for `host`. Returns `None` if no header can name it.
    fn of<T>(
        &self,
        host: &[u8],
        version: Version,
        what: impl FnOnce(&CachedHeaders) -> T,
    ) -> Option<T> {
        let mut last = self.last.lock();
        Some(match &*last {
            Some(last) if last.host == *host && last.version == version => what(last),
            _ => {
                let host = HeaderValue::from_bytes(host).ok()?;
                what(last.insert(self.cached_headers(host, version)))
            }
        })
    }

    fn cached_headers(&self, host: HeaderValue, version: Version) -> CachedHeaders {
        let hop = self.hop(host.to_str().ok());
        let mut lines = Vec::with_capacity(256);
        let mut length = 0;
        for (name, value) in [
            (VIA, &via(version)),
            (FOR, &self.peer),
            (PROTO, &self.proto),
            (REAL_IP, &self.peer),
            (FORWARDED, &hop),
            (HOST, &host),
            (header::HOST, &host),
        ] {
            length = lines.len();
            lines.extend_from_slice(name.as_str().as_bytes());
            lines.extend_from_slice(b": ");
            lines.extend_from_slice(value.as_bytes());
            lines.extend_from_slice(b"\r\n");
        }
        CachedHeaders {
            host,
            version,
            hop,
            lines: Bytes::from(lines),
            length,
        }
    }

    fn hop(&self, host: Option<&str>) -> HeaderValue {
        let peer = self.peer.to_str().unwrap_or("unknown");
        let proto = self.proto.to_str().unwrap_or("http");
        let mut hop = String::with_capacity(64);
        // An IPv6 address is a quoted string in brackets.
        let written = if peer.contains(':') {
            write!(hop, "for=\"[{peer}]\"")
        } else {
            write!(hop, "for={peer}")
        };
        // A host that could end the quotes is omitted.
        let host = host.filter(|host| !host.contains(['"', '\\']));
        let written = written.and_then(|()| match host {
            Some(host) => write!(hop, ";host=\"{host}\";proto={proto}"),
            None => write!(hop, ";proto={proto}"),
        });
        debug_assert!(written.is_ok(), "writing to a string");
        HeaderValue::try_from(hop).unwrap_or(HeaderValue::from_static("for=unknown"))
    }
}

/// Appends to a list in one field, so that a reader of only one line gets the whole list.
fn append(headers: &mut HeaderMap, name: HeaderName, value: &HeaderValue) {
    let joined = append_to(headers, &name, value);
    headers.insert(name, joined);
}

/// Returns a list with `value` at its end.
fn append_to(headers: &HeaderMap, name: &HeaderName, value: &HeaderValue) -> HeaderValue {
    let mut joined = Vec::with_capacity(64);
    for earlier in headers.get_all(name) {
        joined.extend_from_slice(earlier.as_bytes());
        joined.extend_from_slice(b", ");
    }
    joined.extend_from_slice(value.as_bytes());
    // Joined from valid values, so it is valid.
    HeaderValue::from_bytes(&joined).unwrap_or_else(|_| value.clone())
}

fn keep_or(headers: &mut HeaderMap, name: HeaderName, value: Option<&HeaderValue>) {
    if let Some(value) = value {
        headers.entry(name).or_insert_with(|| value.clone());
    }
}

fn via(version: Version) -> HeaderValue {
    HeaderValue::from_static(match version {
        Version::HTTP_10 => "1.0 tidegate",
        Version::HTTP_2 => "2.0 tidegate",
        _ => "1.1 tidegate",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(
        peer: &str,
        is_trusted: bool,
        lines: &[(&'static str, &'static str)],
    ) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let trace = ForwardingHeaders::new(peer.parse().unwrap(), true);
        let host = HeaderValue::from_static("shop.example:8443");
        trace.write(&mut headers, Some(&host), Version::HTTP_2, is_trusted);
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()));
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort();
        pairs
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn forwarding_headers_of_untrusted_clients_are_replaced() {
        let forged = [
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-for", "192.0.2.2"),
            ("forwarded", "for=192.0.2.1"),
            ("x-real-ip", "192.0.2.1"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-host", "bank.example"),
            ("x-forwarded-port", "1"),
            ("x-forwarded-prefix", "/admin"),
            ("x-forwarded-ssl", "on"),
            ("x-forwarded-user", "root"),
        ];
        assert_eq!(
            written("198.51.100.7", false, &forged),
            [
                pair(
                    "forwarded",
                    "for=198.51.100.7;host=\"shop.example:8443\";proto=https"
                ),
                pair("via", "2.0 tidegate"),
                pair("x-forwarded-for", "198.51.100.7"),
                pair("x-forwarded-host", "shop.example:8443"),
                pair("x-forwarded-proto", "https"),
                pair("x-real-ip", "198.51.100.7"),
            ]
        );
    }

    #[test]
    fn forwarding_lines_equal_forwarding_fields() {
        let trace = ForwardingHeaders::new("2001:db8::1".parse().unwrap(), false);
        let mut headers = HeaderMap::new();
        for (host, version) in [
            ("a.example", Version::HTTP_11),
            ("a.example", Version::HTTP_2),
            ("b.example", Version::HTTP_2),
        ] {
            let value = HeaderValue::from_static(host);
            headers.clear();
            // HTTP/2 has the host in the target. Then `Host` is one of the lines.
            let is_named = version == Version::HTTP_2;
            if !is_named {
                headers.insert(header::HOST, value.clone());
            }
            let fields = RequestFields::of(&headers);
            let upstreams = trace.lines(fields, (host.as_bytes(), false), version);
            assert!(!upstreams.unwrap().has_host);
            let lines = trace
                .lines(fields, (host.as_bytes(), true), version)
                .unwrap();
            assert_eq!(lines.has_host, is_named);
            trace.write(&mut headers, Some(&value), version, false);
            if is_named {
                headers.insert(header::HOST, value);
            } else {
                headers.remove(header::HOST);
            }
            let mut lines: Vec<_> = std::str::from_utf8(&lines.text).unwrap().lines().collect();
            let fields = headers.iter();
            let mut fields: Vec<_> = fields
                .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                .collect();
            lines.sort_unstable();
            fields.sort_unstable();
            assert_eq!(lines, fields);
        }
        // The request's own forwarding headers have to be evaluated first.
        let fields = RequestFields::of(&headers);
        let lines = trace.lines(fields, (b"a.example", true), Version::HTTP_11);
        assert!(lines.is_none());
    }

    #[test]
    fn forwarding_headers_of_a_trusted_proxy_are_extended() {
        let received = [
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-for", "192.0.2.2"),
            ("forwarded", "for=192.0.2.1"),
            ("x-real-ip", "192.0.2.1"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-port", "80"),
            ("via", "1.1 edge"),
        ];
        let hop = "for=192.0.2.1, for=\"[2001:db8::1]\";host=\"shop.example:8443\";proto=https";
        assert_eq!(
            written("2001:db8::1", true, &received),
            [
                pair("forwarded", hop),
                pair("via", "1.1 edge, 2.0 tidegate"),
                pair("x-forwarded-for", "192.0.2.1, 192.0.2.2, 2001:db8::1"),
                pair("x-forwarded-host", "shop.example:8443"),
                pair("x-forwarded-port", "80"),
                pair("x-forwarded-proto", "http"),
                pair("x-real-ip", "192.0.2.1"),
            ]
        );
    }
}
