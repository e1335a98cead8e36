//! HTTP/2, without TLS and with it, on both sides.
//!
//! | module | who speaks it |
//! |---|---|
//! | `programs` | curl and h2load |
//! | `upstreams` | upstreams, in every way that they can; trailers there and back |
//! | `clients` | clients, where HTTP/2 is not HTTP/1.1 with other bytes |

mod clients;
mod programs;
mod upstreams;

use crate::kit::certificates::Certificates;
use crate::kit::{Gate, Upstream, gate};

/// A gateway with TLS.
async fn secured(upstream: &Upstream, certificates: &Certificates) -> Gate {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| certificates.path(name));
    let routes = format!(
        "{{ id: all, upstreams: ['http://{}'], policy: none }}",
        upstream.address
    );
    let address = "'127.0.0.1:0'";
    let with_tls = format!("{{ address: {address}, tls: {{ cert: '{cert}', key: '{key}' }} }}");
    let config = gate::config(&routes, "rate: 1/s").replacen(address, &with_tls, 1);
    Gate::start(&config).await
}
