//! The greeting for a person who tries the program out.

use crate::commands::gateway::reachable;
use std::net::SocketAddr;

/// Returns the commands that show a request allowed, and then refused. They match the built-in policy.
pub(super) fn text(http: SocketAddr, admin: SocketAddr) -> String {
    let (http, admin) = (reachable(http), reachable(admin));
    format!(
        "\
Tidegate is serving a small built-in policy: each address may send five requests at once,
then one a second. Send six, and see the last one refused:

  for i in 1 2 3 4 5 6; do
    curl -s http://{http}/v1/check -d '{{\"ip\": \"192.0.2.1\"}}'; echo
  done

Health and metrics are at http://{admin}/readyz and http://{admin}/metrics.
To serve your own limits:  tidegate serve FILE
To stop:                   Ctrl-C
"
    )
}
