//! HTTP/2, with and without TLS, on both sides.
//!
//! | module | contents |
//! |---|---|
//! | `programs` | curl and h2load |
//! | `upstreams` | upstreams over every protocol; trailers in both directions |
//! | `clients` | clients, where HTTP/2 differs from HTTP/1.1 |

mod clients;
mod programs;
mod upstreams;

use crate::kit::certificates::Certificates;
use crate::kit::{Gate, Upstream, gate};

/// Returns a gateway with TLS.
async fn secured(upstream: &Upstream, certificates: &Certificates) -> Gate {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| certificates.path(name));
    let routes = format!(
        "{{ name: all, upstreams: ['http://{}'], policy: none }}",
        upstream.address
    );
    let address = "'127.0.0.1:0'";
    let with_tls = format!("{{ address: {address}, tls: {{ cert: '{cert}', key: '{key}' }} }}");
    let config = gate::config(&routes, "rate: 1/s").replacen(address, &with_tls, 1);
    Gate::start(&config).await
}
