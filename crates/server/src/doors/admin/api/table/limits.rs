//! The limits of policies.

use crate::doors::admin::api::of::{limits, modes};
use crate::doors::admin::api::page::{LIMIT, NAME, OFFSET};
use crate::doors::admin::api::route::{BodyOf, Gives, Param, ParamKind, Route, Verb};
use tidegate_policy::admin::Role;

/// Whose limits.
const POLICY: Param = Param {
    name: "policy",
    kind: ParamKind::Text,
    about: "Only those of this policy.",
};

/// Limits that are so.
const MODE: Param = Param {
    name: "mode",
    kind: ParamKind::Word(&modes::MODES),
    about: "Only those in this mode.",
};

pub(super) static ROUTES: &[Route] = &[
    Route {
        verb: Verb::Get,
        path: "/limits",
        id: "listLimits",
        tag: "limits",
        about: "The limits of all policies.",
        role: Role::Read,
        query: &[OFFSET, LIMIT, NAME, POLICY, MODE],
        body: None,
        gives: Gives::versioned(200, "Limits"),
        is_versioned: false,
        refuses: &[],
        handler: |api, call| Box::pin(async move { Ok(limits::list(api, call).await) }),
    },
    Route {
        verb: Verb::Get,
        path: "/policies/{policy}/limits",
        id: "listLimitsOfPolicy",
        tag: "limits",
        about: "The limits of a policy, in the order in which they are looked at.",
        role: Role::Read,
        query: &[OFFSET, LIMIT, NAME, MODE],
        body: None,
        gives: Gives::versioned(200, "Limits"),
        is_versioned: false,
        refuses: &[],
        handler: |api, call| Box::pin(limits::list_of(api, call)),
    },
    Route {
        verb: Verb::Post,
        path: "/policies/{policy}/limits",
        id: "createLimit",
        tag: "limits",
        about: "Adds a limit to a policy, after all others.",
        role: Role::Admin,
        query: &[],
        body: Some(BodyOf::json("limit")),
        gives: Gives::versioned(201, "LimitItem"),
        is_versioned: false,
        refuses: &[409, 503],
        handler: |api, call| Box::pin(limits::create(api, call)),
    },
    Route {
        verb: Verb::Get,
        path: "/policies/{policy}/limits/{limit}",
        id: "getLimit",
        tag: "limits",
        about: "A limit.",
        role: Role::Read,
        query: &[],
        body: None,
        gives: Gives::versioned(200, "LimitItem"),
        is_versioned: false,
        refuses: &[],
        handler: |api, call| Box::pin(limits::get(api, call)),
    },
    Route {
        verb: Verb::Patch,
        path: "/policies/{policy}/limits/{limit}",
        id: "changeLimit",
        tag: "limits",
        about: "Changes what a merge patch says of a limit.",
        role: Role::Admin,
        query: &[],
        body: Some(BodyOf::patch("Patch")),
        gives: Gives::versioned(200, "LimitItem"),
        is_versioned: true,
        refuses: &[409, 503],
        handler: |api, call| Box::pin(limits::change(api, call)),
    },
    Route {
        verb: Verb::Delete,
        path: "/policies/{policy}/limits/{limit}",
        id: "deleteLimit",
        tag: "limits",
        about: "Removes a limit that no other stands in for.",
        role: Role::Admin,
        query: &[],
        body: None,
        gives: Gives::NOTHING,
        is_versioned: true,
        refuses: &[409, 422, 503],
        handler: |api, call| Box::pin(limits::remove(api, call)),
    },
    Route {
        verb: Verb::Put,
        path: "/policies/{policy}/limits/{limit}/mode",
        id: "turnLimit",
        tag: "limits",
        about: "Turns a limit: off, on, or to a mode.",
        role: Role::Operate,
        query: &[],
        body: Some(BodyOf::json("ModeOfLimit")),
        gives: Gives::versioned(200, "LimitItem"),
        is_versioned: true,
        refuses: &[409, 503],
        handler: |api, call| Box::pin(modes::of_limit(api, call)),
    },
];
