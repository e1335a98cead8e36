//! Routes for the limits of policies.

use crate::doors::admin::api::of::{limits, modes};
use crate::doors::admin::api::page::{LIMIT, NAME, OFFSET};
use crate::doors::admin::api::route::{AdminRoute, BodyOf, Gives, Param, ParamKind, RouteMethod};
use tidegate_policy::admin::AdminRole;

/// The policy whose limits to list.
const POLICY: Param = Param {
    name: "policy",
    kind: ParamKind::Text,
    about: "Only those of this policy.",
};

/// The mode of the limits to list.
const MODE: Param = Param {
    name: "mode",
    kind: ParamKind::Word(&modes::MODES),
    about: "Only those in this mode.",
};

pub(super) static ROUTES: &[AdminRoute] = &[
    AdminRoute {
        verb: RouteMethod::Get,
        path: "/limits",
        id: "listLimits",
        tag: "limits",
        about: "The limits of all policies.",
        role: AdminRole::Read,
        query: &[OFFSET, LIMIT, NAME, POLICY, MODE],
        body: None,
        gives: Gives::versioned(200, "Limits"),
        is_versioned: false,
        refuses: &[],
        handler: |api, call| Box::pin(async move { Ok(limits::list(api, call).await) }),
    },
    AdminRoute {
        verb: RouteMethod::Get,
        path: "/policies/{policy}/limits",
        id: "listLimitsOfPolicy",
        tag: "limits",
        about: "The limits of a policy, in the order in which they are looked at.",
        role: AdminRole::Read,
        query: &[OFFSET, LIMIT, NAME, MODE],
        body: None,
        gives: Gives::versioned(200, "Limits"),
        is_versioned: false,
        refuses: &[],
        handler: |api, call| Box::pin(limits::list_of(api, call)),
    },
    AdminRoute {
        verb: RouteMethod::Post,
        path: "/policies/{policy}/limits",
        id: "createLimit",
        tag: "limits",
        about: "Adds a limit to a policy, after all others.",
        role: AdminRole::Admin,
        query: &[],
        body: Some(BodyOf::json("limit")),
        gives: Gives::versioned(201, "LimitItem"),
        is_versioned: false,
        refuses: &[409, 503],
        handler: |api, call| Box::pin(limits::create(api, call)),
    },
    AdminRoute {
        verb: RouteMethod::Get,
        path: "/policies/{policy}/limits/{limit}",
        id: "getLimit",
        tag: "limits",
        about: "A limit.",
        role: AdminRole::Read,
        query: &[],
        body: None,
        gives: Gives::versioned(200, "LimitItem"),
        is_versioned: false,
        refuses: &[],
        handler: |api, call| Box::pin(limits::get(api, call)),
    },
    AdminRoute {
        verb: RouteMethod::Patch,
        path: "/policies/{policy}/limits/{limit}",
        id: "changeLimit",
        tag: "limits",
        about: "Changes what a merge patch says of a limit.",
        role: AdminRole::Admin,
        query: &[],
        body: Some(BodyOf::patch("Patch")),
        gives: Gives::versioned(200, "LimitItem"),
        is_versioned: true,
        refuses: &[409, 503],
        handler: |api, call| Box::pin(limits::change(api, call)),
    },
    AdminRoute {
        verb: RouteMethod::Delete,
        path: "/policies/{policy}/limits/{limit}",
        id: "deleteLimit",
        tag: "limits",
        about: "Removes a limit that no other stands in for.",
        role: AdminRole::Admin,
        query: &[],
        body: None,
        gives: Gives::NOTHING,
        is_versioned: true,
        refuses: &[409, 422, 503],
        handler: |api, call| Box::pin(limits::remove(api, call)),
    },
    AdminRoute {
        verb: RouteMethod::Put,
        path: "/policies/{policy}/limits/{limit}/mode",
        id: "turnLimit",
        tag: "limits",
        about: "Turns a limit: off, on, or to a mode.",
        role: AdminRole::Operate,
        query: &[],
        body: Some(BodyOf::json("ModeOfLimit")),
        gives: Gives::versioned(200, "LimitItem"),
        is_versioned: true,
        refuses: &[409, 503],
        handler: |api, call| Box::pin(modes::of_limit(api, call)),
    },
];
