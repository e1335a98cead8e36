//! The field names of access logs.

/// The meaning of a field. Of several fields with the same meaning, the one with the highest rank counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The time of the request, or else of the log entry.
    Time(u8),
    /// The client's address.
    Client(u8),
    /// `X-Forwarded-For`.
    Forwarded,
    User,
    Method,
    Host,
    /// The path, optionally with a query, or an absolute URL.
    Target,
    Route,
    /// An object with more of these fields, or a request line.
    Request,
    /// An object of headers.
    Headers,
    /// The header of this name.
    Header(&'static str),
    /// The header whose name follows after this many bytes of the field's name.
    Prefixed(usize),
}

/// Traefik's prefix for request headers.
const TRAEFIK_HEADER: &str = "request_";

/// Returns the meaning of a field, by its name.
#[expect(
    clippy::match_same_arms,
    reason = "in the order of the programs that write them"
)]
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    Some(match name {
        // Traefik
        "StartUTC" => Meaning::Time(4),
        "StartLocal" => Meaning::Time(3),
        "time" => Meaning::Time(1),
        "ClientHost" => Meaning::Client(4),
        "ClientAddr" => Meaning::Client(2),
        "ClientUsername" => Meaning::User,
        "RequestMethod" => Meaning::Method,
        "RequestHost" => Meaning::Host,
        "RequestPath" => Meaning::Target,
        "RouterName" => Meaning::Route,
        // Envoy; Envoy Gateway names some fields after their headers
        "start_time" => Meaning::Time(3),
        "downstream_remote_address" | "downstream_remote_address_without_port" => {
            Meaning::Client(3)
        }
        "downstream_direct_remote_address" => Meaning::Client(1),
        "x_forwarded_for" | "x-forwarded-for" => Meaning::Forwarded,
        "method" | ":method" => Meaning::Method,
        "authority" | ":authority" => Meaning::Host,
        "path" | ":path" | "x-envoy-origin-path" | "x-envoy-original-path" => Meaning::Target,
        "route_name" => Meaning::Route,
        "user_agent" | "user-agent" => Meaning::Header("User-Agent"),
        // Caddy
        "ts" => Meaning::Time(3),
        "request" => Meaning::Request,
        "client_ip" => Meaning::Client(4),
        "remote_ip" | "remote_addr" => Meaning::Client(2),
        "host" => Meaning::Host,
        "uri" => Meaning::Target,
        "headers" => Meaning::Headers,
        "user_id" => Meaning::User,
        // nginx, with the names of its variables
        "time_iso8601" | "msec" | "time_local" | "@timestamp" | "timestamp" => Meaning::Time(2),
        "remote_user" => Meaning::User,
        "request_method" => Meaning::Method,
        "http_host" => Meaning::Host,
        "request_uri" => Meaning::Target,
        "http_x_forwarded_for" => Meaning::Forwarded,
        "http_user_agent" => Meaning::Header("User-Agent"),
        _ => {
            // Header names begin with a capital there, unlike nginx's `request_time` and similar fields.
            let header = name.strip_prefix(TRAEFIK_HEADER)?;
            let is_header = header.starts_with(|first: char| first.is_ascii_uppercase());
            return is_header.then_some(Meaning::Prefixed(TRAEFIK_HEADER.len()));
        }
    })
}
