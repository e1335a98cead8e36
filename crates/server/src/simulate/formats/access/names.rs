//! What the fields of access logs are called.

/// What a field tells. Where several fields tell the same, the one with the higher rank counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// When the request came in, or else when it was logged.
    Time(u8),
    /// Where it came from.
    Client(u8),
    /// `X-Forwarded-For`.
    Forwarded,
    User,
    Method,
    Host,
    /// The path, perhaps with a query, perhaps a whole URL.
    Target,
    Route,
    /// An object with more of these, or a request line.
    Request,
    /// An object of headers.
    Headers,
    /// The header of this name.
    Header(&'static str),
    /// The header that the field is named after, behind this many bytes.
    Prefixed(usize),
}

/// What Traefik puts before the name of a request's header.
const TRAEFIK_HEADER: &str = "request_";

/// What a field tells, going by its name.
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
        // Envoy; Envoy Gateway names some fields as the headers they come from
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
        // nginx, in the names that its own variables have
        "time_iso8601" | "msec" | "time_local" | "@timestamp" | "timestamp" => Meaning::Time(2),
        "remote_user" => Meaning::User,
        "request_method" => Meaning::Method,
        "http_host" => Meaning::Host,
        "request_uri" => Meaning::Target,
        "http_x_forwarded_for" => Meaning::Forwarded,
        "http_user_agent" => Meaning::Header("User-Agent"),
        _ => {
            // Headers begin with a capital there, unlike nginx's `request_time` and its like.
            let header = name.strip_prefix(TRAEFIK_HEADER)?;
            let is_header = header.starts_with(|first: char| first.is_ascii_uppercase());
            return is_header.then_some(Meaning::Prefixed(TRAEFIK_HEADER.len()));
        }
    })
}
