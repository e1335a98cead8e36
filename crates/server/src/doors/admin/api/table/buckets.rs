//! Buckets.

use crate::doors::admin::api::of::buckets;
use crate::doors::admin::api::route::{BodyOf, Gives, Route, Verb};
use tidegate_policy::admin::Role;

pub(super) static ROUTES: &[Route] = &[
    Route {
        verb: Verb::Post,
        path: "/buckets/inspect",
        id: "inspectBucket",
        tag: "buckets",
        about: "Looks into a bucket. Asked with a body, for what names a bucket may be a secret.",
        role: Role::Read,
        query: &[],
        body: Some(BodyOf::json("Bucket")),
        gives: Gives::seen(200, "Sight"),
        is_versioned: false,
        refuses: &[503],
        handler: |api, call| Box::pin(buckets::inspect(api, call)),
    },
    Route {
        verb: Verb::Post,
        path: "/buckets/reset",
        id: "resetBucket",
        tag: "buckets",
        about: "Makes a bucket as good as new, or all buckets of a limit.",
        role: Role::Operate,
        query: &[],
        body: Some(BodyOf::json("Reset")),
        gives: Gives::seen(200, "Forgotten"),
        is_versioned: false,
        refuses: &[503],
        handler: |api, call| Box::pin(buckets::reset(api, call)),
    },
];
