//! Routes for this server: information, caller, status, and reload.

use crate::doors::admin::api::of::status;
use crate::doors::admin::api::route::{AdminRoute, Gives, RouteMethod};
use std::future::ready;
use tidegate_policy::admin::AdminRole;

pub(super) static ROUTES: &[AdminRoute] = &[
    AdminRoute {
        verb: RouteMethod::Get,
        path: "/openapi.json",
        id: "getOpenApi",
        tag: "server",
        about: "This document.",
        role: AdminRole::Read,
        query: &[],
        body: None,
        gives: Gives::versioned(200, "Document"),
        is_versioned: false,
        refuses: &[],
        handler: |_, _| Box::pin(ready(Ok(status::openapi()))),
    },
    AdminRoute {
        verb: RouteMethod::Get,
        path: "/whoami",
        id: "whoAmI",
        tag: "server",
        about: "Who the caller is, and what they may do.",
        role: AdminRole::Read,
        query: &[],
        body: None,
        gives: Gives::seen(200, "Caller"),
        is_versioned: false,
        refuses: &[],
        handler: |_, call| Box::pin(ready(Ok(status::whoami(call)))),
    },
    AdminRoute {
        verb: RouteMethod::Get,
        path: "/status",
        id: "getStatus",
        tag: "server",
        about: "How this server is: its sources, its store, its instances, and how much it serves.",
        role: AdminRole::Read,
        query: &[],
        body: None,
        gives: Gives::seen(200, "Status"),
        is_versioned: false,
        refuses: &[],
        handler: |api, call| Box::pin(status::status(api, call)),
    },
    AdminRoute {
        verb: RouteMethod::Post,
        path: "/reload",
        id: "reload",
        tag: "server",
        about: "Reads the file and all sources again, and serves what they say.",
        role: AdminRole::Operate,
        query: &[],
        body: None,
        gives: Gives::seen(200, "Reloaded"),
        is_versioned: false,
        refuses: &[409, 422, 503],
        handler: |api, call| Box::pin(status::reload(api, call)),
    },
];
