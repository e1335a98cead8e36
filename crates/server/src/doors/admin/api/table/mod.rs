//! All routes of the admin API: who answers, and what the `OpenAPI` document says. One list, in parts by
//! what the routes are of.
//!
//! | module | its routes |
//! |---|---|
//! | `server` | this server: how it stands, reading everything anew |
//! | `policies`, `limits` | policies, and the limits in them |
//! | `guards` | guards, their lists, and whom these keep out |
//! | `routes` | routes of the gateway |
//! | `plans` | sources of plans, and their entries |
//! | `buckets` | looking into buckets, and resetting them |

mod buckets;
mod guards;
mod limits;
mod plans;
mod policies;
mod routes;
mod server;

use super::route::{AdminRoute, Param, ParamKind};

/// Where something new is written to.
const INTO: Param = Param {
    name: "source",
    kind: ParamKind::Text,
    about: "Which source it is written to; the first that can be written to unless told.",
};

/// All parts, in the order in which the document has them.
static PARTS: &[&[AdminRoute]] = &[
    server::ROUTES,
    policies::ROUTES,
    limits::ROUTES,
    guards::ROUTES,
    routes::ROUTES,
    plans::ROUTES,
    buckets::ROUTES,
];

/// All routes.
pub(super) fn all() -> impl Iterator<Item = &'static AdminRoute> {
    PARTS.iter().copied().flatten()
}
