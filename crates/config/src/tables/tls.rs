//! The fields of `tls`, for servers and for clients.

use crate::language::table::Shape::Text;
use crate::language::table::{FieldTable, optional, required};

/// The TLS fields of a listener.
pub(crate) static SERVER_TLS: FieldTable = FieldTable {
    what: "the TLS of a listener",
    fields: &[
        required(
            "cert",
            Text("/etc/tidegate/cert.pem"),
            "PEM file of up to 1 MiB with the certificate chain. Reloaded when it changes.",
        ),
        required(
            "key",
            Text("/etc/tidegate/key.pem"),
            "PEM file with the private key. Reloaded when it changes.",
        ),
        optional(
            "client_ca",
            Text("/etc/tidegate/ca.pem"),
            "PEM file with certificate authorities: callers must present a certificate signed by one \
             of them. Reloaded when it changes. Default: none.",
        ),
    ],
    exactly_one: &[],
};

/// The TLS fields for every server that Tidegate calls: Redis, upstreams, sources.
pub(crate) static CLIENT_TLS: FieldTable = FieldTable {
    what: "the TLS of a client",
    fields: &[
        optional(
            "ca",
            Text("/etc/tidegate/ca.pem"),
            "PEM file with the only certificate authorities for the server, read with the \
             configuration. Default: those of the system.",
        ),
        optional(
            "server_name",
            Text("server.internal"),
            "Server name that the certificate must match. Default: the host of the URL.",
        ),
        optional(
            "cert",
            Text("/etc/tidegate/cert.pem"),
            "PEM file with the client certificate chain, read with the configuration; needs `key`. \
             Default: none.",
        ),
        optional(
            "key",
            Text("/etc/tidegate/key.pem"),
            "PEM file with the private key of `cert`.",
        ),
    ],
    exactly_one: &[],
};
