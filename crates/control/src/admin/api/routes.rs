//! All routes of the admin API, by resource. This one list makes both the dispatch and the `OpenAPI`
//! document. The types of a row are those of its handler, or it does not compile.

use super::bodies::buckets::{BucketSelector, ResetReport, ResetRequest};
use super::bodies::budgets::BudgetSelector;
use super::bodies::documents::{
    EntryMode, GuardItem, LimitItem, ModeChange, ModeWord, PolicyAssignment, PolicyItem, RouteItem,
};
use super::bodies::members::{BanItem, MemberItem, NewMember};
use super::bodies::page::{LIMIT, ListPage, NAME, OFFSET, SOURCE};
use super::bodies::plans::{EntryItem, NewEntry, PlanAssignment, PlanSourceItem};
use super::bodies::server::{CallerInfo, ReloadReport, ServerStatus};
use super::bodies::{LanguageDocument, MergePatch, NoContent};
use super::handlers::{
    assign, bans, buckets, budgets, documents, limits, members, modes, plans, status,
};
use super::openapi;
use super::request::PartialBody;
use super::routing::route::{
    AdminRoute, Param, ParamKind, create, delete, get, get_static, patch, post, put, run,
};
use crate::buckets::budget::BudgetReport;
use crate::buckets::report::BucketReport;
use std::sync::LazyLock;
use tidegate_config::admin::AdminRole::{Admin, Operate, Read};

/// Boxes a handler of calls without a body.
macro_rules! read {
    ($handler:path) => {
        |api, call| Box::pin($handler(api, call))
    };
}

/// Boxes a handler of calls with a body.
macro_rules! write {
    ($handler:path) => {
        |api, call, body| Box::pin($handler(api, call, body))
    };
}

/// Returns all routes, in the order of the document.
pub(super) fn all() -> &'static [AdminRoute] {
    static ALL: LazyLock<Vec<AdminRoute>> = LazyLock::new(|| {
        let resources = [
            ("server", server()),
            ("policies", policies()),
            ("limits", limits()),
            ("guards", guards()),
            ("guards", guard_members()),
            ("routes", routes()),
            ("plans", plan_sources()),
            ("plans", plan_changes()),
            ("buckets", buckets()),
        ];
        let routes = resources.into_iter().flat_map(|(tag, routes)| {
            let tagged = routes.into_iter().map(move |it| AdminRoute { tag, ..it });
            tagged.collect::<Vec<_>>()
        });
        routes.collect()
    });
    &ALL
}

/// This server: its document, the caller, status, reload.
fn server() -> Vec<AdminRoute> {
    vec![
        get_static("/openapi.json", "getOpenApi", openapi::document)
            .about("Returns this document."),
        get::<CallerInfo>("/whoami", "whoAmI", read!(status::whoami))
            .about("Returns the caller and its role."),
        get::<ServerStatus>("/status", "getStatus", read!(status::status)).about(
            "Returns the status of this server: sources, store, instances, lists and plans.",
        ),
        run::<ReloadReport>(Operate, "/reload", "reload", read!(status::reload))
            .about("Reloads the file and all sources.")
            .fails(&[409, 422, 503]),
    ]
}

fn policies() -> Vec<AdminRoute> {
    vec![
        get::<ListPage<PolicyItem>>("/policies", "listPolicies", read!(documents::list))
            .about("Lists the policies in order. The first applies if a request names none.")
            .query(&[OFFSET, LIMIT, NAME, SOURCE])
            .versioned(),
        create::<LanguageDocument, PolicyItem>(
            Admin,
            "/policies",
            "createPolicy",
            write!(documents::create),
        )
        .about("Creates a policy.")
        .query(&[INTO])
        .in_language("policy")
        .versioned(),
        get::<PolicyItem>("/policies/{policy}", "getPolicy", read!(documents::get))
            .about("Returns a policy.")
            .versioned(),
        patch::<MergePatch, PolicyItem>(
            Admin,
            "/policies/{policy}",
            "changePolicy",
            write!(documents::change),
        )
        .about("Applies a merge patch to a policy."),
        delete::<NoContent>(
            Admin,
            "/policies/{policy}",
            "deletePolicy",
            read!(documents::remove::<PolicyItem>),
        )
        .about("Removes a policy that no route uses."),
        put::<ModeChange<ModeWord>, PolicyItem>(
            Operate,
            "/policies/{policy}/mode",
            "turnPolicy",
            write!(modes::of_policy),
        )
        .about("Sets the mode of all limits of a policy."),
    ]
}

fn limits() -> Vec<AdminRoute> {
    vec![
        get::<ListPage<LimitItem>>("/limits", "listLimits", read!(limits::list))
            .about("Lists the limits of all policies.")
            .query(&[OFFSET, LIMIT, NAME, POLICY, MODE])
            .versioned(),
        get::<ListPage<LimitItem>>(
            "/policies/{policy}/limits",
            "listLimitsOfPolicy",
            read!(limits::list_of),
        )
        .about("Lists the limits of a policy, in the order of evaluation.")
        .query(&[OFFSET, LIMIT, NAME, MODE])
        .versioned(),
        create::<LanguageDocument, LimitItem>(
            Admin,
            "/policies/{policy}/limits",
            "createLimit",
            write!(limits::create),
        )
        .about("Adds a limit to a policy, after all others.")
        .in_language("limit")
        .versioned(),
        get::<LimitItem>(
            "/policies/{policy}/limits/{limit}",
            "getLimit",
            read!(limits::get),
        )
        .about("Returns a limit.")
        .versioned(),
        patch::<MergePatch, LimitItem>(
            Admin,
            "/policies/{policy}/limits/{limit}",
            "changeLimit",
            write!(limits::change),
        )
        .about("Applies a merge patch to a limit."),
        delete::<NoContent>(
            Admin,
            "/policies/{policy}/limits/{limit}",
            "deleteLimit",
            read!(limits::remove),
        )
        .about("Removes a limit that no other limit replaces."),
        put::<ModeChange<ModeWord>, LimitItem>(
            Operate,
            "/policies/{policy}/limits/{limit}/mode",
            "turnLimit",
            write!(modes::of_limit),
        )
        .about("Sets the mode of a limit."),
    ]
}

fn guards() -> Vec<AdminRoute> {
    vec![
        get::<ListPage<GuardItem>>("/guards", "listGuards", read!(documents::list))
            .about("Lists the guards, in the order of evaluation.")
            .query(&[OFFSET, LIMIT, NAME, SOURCE, MODE])
            .versioned(),
        create::<LanguageDocument, GuardItem>(
            Admin,
            "/guards",
            "createGuard",
            write!(documents::create),
        )
        .about("Creates a guard.")
        .query(&[INTO])
        .in_language("guard")
        .versioned(),
        get::<GuardItem>("/guards/{guard}", "getGuard", read!(documents::get))
            .about("Returns a guard.")
            .versioned(),
        patch::<MergePatch, GuardItem>(
            Admin,
            "/guards/{guard}",
            "changeGuard",
            write!(documents::change),
        )
        .about("Applies a merge patch to a guard."),
        delete::<NoContent>(
            Admin,
            "/guards/{guard}",
            "deleteGuard",
            read!(documents::remove::<GuardItem>),
        )
        .about("Removes a guard that nothing uses."),
        put::<ModeChange<ModeWord>, GuardItem>(
            Operate,
            "/guards/{guard}/mode",
            "turnGuard",
            write!(modes::of_document),
        )
        .about("Sets the mode of a guard."),
    ]
}

/// Members of the lists of guards, and bans.
fn guard_members() -> Vec<AdminRoute> {
    vec![
        get::<ListPage<MemberItem>>("/guards/{guard}/members", "listMembers", read!(members::list))
            .about("Lists the members of a guard's list by name. Secrets are masked.")
            .query(&[OFFSET, LIMIT, NAME])
            .fails(&[409, 503]),
        create::<PartialBody<NewMember>, MemberItem>(Operate, "/guards/{guard}/members", "addMember", write!(members::add))
            .about("Adds a member to a guard's list in Redis: for a while, if its members can expire.")
            .or_ok(),
        delete::<NoContent>(Operate, "/guards/{guard}/members/{member}", "removeMember", read!(members::remove))
            .about("Removes a member from a guard's list in Redis.")
            .unconditional(),
        get::<ListPage<BanItem>>("/bans", "listBans", read!(bans::list))
            .about("Lists the clients that the lists in Redis of all enabled guards ban. Secrets are masked.")
            .query(&[OFFSET, LIMIT, NAME, GUARD])
            .fails(&[422, 503]),
    ]
}

fn routes() -> Vec<AdminRoute> {
    vec![
        get::<ListPage<RouteItem>>("/routes", "listRoutes", read!(documents::list))
            .about("Lists the routes, in the order of evaluation.")
            .query(&[OFFSET, LIMIT, NAME, SOURCE, MODE])
            .versioned(),
        create::<LanguageDocument, RouteItem>(
            Admin,
            "/routes",
            "createRoute",
            write!(documents::create),
        )
        .about("Creates a route.")
        .query(&[INTO])
        .in_language("route")
        .versioned(),
        get::<RouteItem>("/routes/{route}", "getRoute", read!(documents::get))
            .about("Returns a route.")
            .versioned(),
        patch::<MergePatch, RouteItem>(
            Admin,
            "/routes/{route}",
            "changeRoute",
            write!(documents::change),
        )
        .about("Applies a merge patch to a route."),
        delete::<NoContent>(
            Admin,
            "/routes/{route}",
            "deleteRoute",
            read!(documents::remove::<RouteItem>),
        )
        .about("Removes a route."),
        put::<PolicyAssignment, RouteItem>(
            Admin,
            "/routes/{route}/policy",
            "assignPolicy",
            write!(assign::policy),
        )
        .about("Sets the policy of a route: one, several, `none`, or `null` for the first of all."),
        put::<ModeChange<ModeWord>, RouteItem>(
            Operate,
            "/routes/{route}/mode",
            "turnRoute",
            write!(modes::of_document),
        )
        .about("Sets the mode of a route. Requests skip a route that is off."),
    ]
}

fn plan_sources() -> Vec<AdminRoute> {
    vec![
        get::<ListPage<PlanSourceItem>>("/plans", "listPlans", read!(plans::list))
            .about("Lists the plan sources and their status.")
            .query(&[OFFSET, LIMIT])
            .fails(&[503]),
        get::<ListPage<EntryItem>>("/plans/{plan}/{level}", "listEntries", read!(plans::list_entries))
            .about("Lists the plans, groups or subjects of a source that stores them by name. Secrets are masked.")
            .query(&[OFFSET, LIMIT, NAME])
            .fails(&[409, 503]),
        create::<NewEntry, EntryItem>(Admin, "/plans/{plan}/{level}", "createEntry", write!(plans::create))
            .about("Creates a plan, a group or a subject.")
            .versioned(),
        get::<EntryItem>("/plans/{plan}/{level}/{entry}", "getEntry", read!(plans::get))
            .about("Returns a plan, a group or a subject, and the values that apply to it.")
            .fails(&[409, 503])
            .versioned(),
    ]
}

/// Changes of a plan, a group or a subject.
fn plan_changes() -> Vec<AdminRoute> {
    const ENTRY: &str = "/plans/{plan}/{level}/{entry}";
    vec![
        patch::<MergePatch, EntryItem>(Admin, ENTRY, "changeEntry", write!(plans::change))
            .about("Applies a merge patch to a plan, a group or a subject."),
        delete::<NoContent>(Admin, ENTRY, "deleteEntry", read!(plans::remove))
            .about("Removes a plan, a group or a subject that is not in use."),
        put::<ModeChange<EntryMode>, EntryItem>(
            Operate,
            "/plans/{plan}/{level}/{entry}/mode",
            "turnEntry",
            write!(plans::turn),
        )
        .about("Turns a plan, a group or a subject off, as if it did not exist, or enforces it."),
        put::<PlanAssignment, EntryItem>(
            Admin,
            "/plans/{plan}/{level}/{entry}/plan",
            "assignPlan",
            write!(plans::assign),
        )
        .about("Sets the plan of a group or a subject; `null` removes it."),
    ]
}

fn buckets() -> Vec<AdminRoute> {
    vec![
        post::<BucketSelector, BucketReport>(
            Read,
            "/buckets/inspect",
            "inspectBucket",
            write!(buckets::inspect),
        )
        .about("Inspects a bucket. It is named in the body, because a key may be a secret."),
        post::<ResetRequest, ResetReport>(
            Operate,
            "/buckets/reset",
            "resetBucket",
            write!(buckets::reset),
        )
        .about("Resets a bucket, or all buckets of a limit."),
        post::<BudgetSelector, BudgetReport>(Read, "/budgets", "readBudgets", write!(budgets::read))
            .about(
                "Returns what a subject has used and has left, of every limit that counts by its identities. \
                 They are in the body, because one may be a secret, and URLs are logged. Reservations are used \
                 until they are settled.",
            ),
    ]
}

/// The source in which to create something.
const INTO: Param = Param {
    name: "source",
    kind: ParamKind::Text,
    about: "The source to write it to. Default: the first writable one.",
};

/// The policy whose limits to list.
const POLICY: Param = Param {
    name: "policy",
    kind: ParamKind::Text,
    about: "Only limits of this policy.",
};

/// The guard whose bans to list.
const GUARD: Param = Param {
    name: "guard",
    kind: ParamKind::Text,
    about: "Only bans by this guard.",
};

/// The mode of the items to list.
const MODE: Param = Param {
    name: "mode",
    kind: ParamKind::Word(&modes::MODES),
    about: "Only items in this mode.",
};
