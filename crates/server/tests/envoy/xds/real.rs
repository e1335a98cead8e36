//! A real Envoy calls a Tidegate with limits over xDS.

use super::NODE;
use super::kit::{ControlPlane, by_user};
use crate::kit::{Site, SiteOptions};

#[test]
fn envoy_is_limited_by_initial_and_updated_xds_limits() {
    let Some(mut server) = ControlPlane::start(&[]) else {
        return;
    };
    server.set(NODE, "1", &[by_user("edge", 2)]);
    let address = server.address.to_string();
    let arguments = ["--envoy-xds", &address, "--envoy-xds-node", NODE];
    let wanted = SiteOptions {
        arguments: arguments.map(str::to_owned).to_vec(),
        ..SiteOptions::default()
    };
    let Some(site) = Site::open(&wanted) else {
        return;
    };
    for status in [200, 200, 429] {
        assert_eq!(site.ask("GET /", &["x-user: ann"]).status, status);
    }
    server.set(NODE, "2", &[by_user("edge", 3)]);
    server.await_answer("2", true);
    for status in [200, 429] {
        assert_eq!(site.ask("GET /", &["x-user: ann"]).status, status);
    }
    assert_eq!((site.counted("ok"), site.counted("over_limit")), (3, 2));
    // Without the server, the last limits stay in force.
    drop(server);
    for status in [200, 200, 200, 429] {
        assert_eq!(site.ask("GET /", &["x-user: bob"]).status, status);
    }
}
