//! Sources of plans, and their subjects.

use crate::doors::admin::api::of::plans;
use crate::doors::admin::api::page::{LIMIT, OFFSET};
use crate::doors::admin::api::route::{Gives, Route, Verb};
use tidegate_policy::admin::Role;

pub(super) static ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/plans",
        id: "listPlans",
        tag: "plans",
        about: "The sources of plans, and how it stands with them.",
        role: Role::Read,
        query: &[OFFSET, LIMIT],
        body: None,
        gives: Gives::seen(200, "Plans"),
        is_versioned: false,
        refuses: &[503],
        handler: |api, call| Box::pin(plans::list(api, call)),
    },
    Route {
        verb: Verb::Get,
        path: "/plans/{plan}/subjects/{subject}",
        id: "getSubject",
        tag: "plans",
        about: "What a subject of a plan has.",
        role: Role::Read,
        query: &[],
        body: None,
        gives: Gives::seen(200, "Subject"),
        is_versioned: false,
        refuses: &[503],
        handler: |api, call| Box::pin(plans::get(api, call)),
    },
];
