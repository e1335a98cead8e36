//! All routes of the admin API. The one list, split by subject, defines both the dispatch and the
//! `OpenAPI` document.
//!
//! | module | its routes |
//! |---|---|
//! | `server` | this server: status, reload |
//! | `policies`, `limits` | policies, and the limits in them |
//! | `guards` | guards, their lists, and bans |
//! | `routes` | routes of the gateway |
//! | `plans` | sources of plans, and their entries |
//! | `buckets` | inspection and reset of buckets |

mod buckets;
mod guards;
mod limits;
mod plans;
mod policies;
mod routes;
mod server;

use super::route::{AdminRoute, Param, ParamKind};

/// The source in which to create something.
const INTO: Param = Param {
    name: "source",
    kind: ParamKind::Text,
    about: "Which source it is written to; the first that can be written to unless told.",
};

/// All parts, in the order of the document.
static PARTS: &[&[AdminRoute]] = &[
    server::ROUTES,
    policies::ROUTES,
    limits::ROUTES,
    guards::ROUTES,
    routes::ROUTES,
    plans::ROUTES,
    buckets::ROUTES,
];

/// Returns all routes.
pub(super) fn all() -> impl Iterator<Item = &'static AdminRoute> {
    PARTS.iter().copied().flatten()
}
