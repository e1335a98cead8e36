//! Routes for buckets.

use crate::doors::admin::api::of::buckets;
use crate::doors::admin::api::route::{AdminRoute, BodyOf, Gives, RouteMethod};
use tidegate_policy::admin::AdminRole;

pub(super) static ROUTES: &[AdminRoute] = &[
    AdminRoute {
        verb: RouteMethod::Post,
        path: "/buckets/inspect",
        id: "inspectBucket",
        tag: "buckets",
        about: "Looks into a bucket. Asked with a body, for what names a bucket may be a secret.",
        role: AdminRole::Read,
        query: &[],
        body: Some(BodyOf::json("Bucket")),
        gives: Gives::seen(200, "Sight"),
        is_versioned: false,
        refuses: &[503],
        handler: |api, call| Box::pin(buckets::inspect(api, call)),
    },
    AdminRoute {
        verb: RouteMethod::Post,
        path: "/buckets/reset",
        id: "resetBucket",
        tag: "buckets",
        about: "Makes a bucket as good as new, or all buckets of a limit.",
        role: AdminRole::Operate,
        query: &[],
        body: Some(BodyOf::json("Reset")),
        gives: Gives::seen(200, "Forgotten"),
        is_versioned: false,
        refuses: &[503],
        handler: |api, call| Box::pin(buckets::reset(api, call)),
    },
];
