//! The routers: which limits each has, and which other routers it takes requests from.
//!
//! Of several routers that match a request, Traefik uses the one of the highest priority. In the translation
//! it replaces the limits of the others, so a router must be certain to get those requests: where that cannot
//! be known from the file, the limits of both apply.

use super::middleware::TraefikRateLimit;
use super::rule;
use super::settings::{TraefikItem, TraefikItems};
use crate::SourceFile;
use crate::document::line;
use crate::draft::ConditionDraft;
use crate::note::ImportNotes;
use crate::scopes::RuleScope;
use std::collections::BTreeSet;
use tidegate_policy::text::ConfigFault;

/// The most chains inside each other.
const CHAINS_MAX: usize = 8;

/// A router, and its limits.
pub(super) struct LimitedRouter<'i> {
    pub(super) item: &'i TraefikItem,
    /// The indices of its middlewares.
    pub(super) uses: Vec<usize>,
    pub(super) scope: RuleScope,
    pub(super) priority: u64,
    /// Its entry points in lower case; all of them if there are none.
    entry_points: BTreeSet<String>,
    has_tls: bool,
    /// True if all its middlewares are known.
    is_whole: bool,
}

/// A middleware of a router, which has its own buckets.
#[derive(Clone, Copy)]
pub(super) struct RouterLimit<'i> {
    pub(super) middleware: &'i TraefikRateLimit,
    pub(super) router: Option<&'i TraefikItem>,
    pub(super) is_expressible: bool,
}

/// Reads a router, and adds its limits.
pub(super) fn read<'i>(
    item: &'i TraefikItem,
    items: &TraefikItems,
    limits: &'i [TraefikRateLimit],
    (routers, all): (&mut Vec<LimitedRouter<'i>>, &mut Vec<RouterLimit<'i>>),
    (file, notes): (&SourceFile, &mut ImportNotes),
) {
    let named = item.get("middlewares").map_or(&[][..], |it| &it.values);
    let mut middlewares = UsedMiddlewares::default();
    for name in named {
        middlewares.add(name, items, limits, 0);
    }
    middlewares.note_unknown(item, (file, notes));
    let (text, place) = item.text("rule").unwrap_or(("", item.place));
    let rule = rule::read(text);
    let is_expressible = rule.is_ok();
    let mut uses = Vec::new();
    for middleware in middlewares.limits {
        if middleware.rate.is_some() {
            uses.push(all.len());
            all.push(RouterLimit {
                middleware,
                router: Some(item),
                is_expressible,
            });
        }
    }
    let rule = match rule {
        Ok(rule) => rule,
        Err(part) => {
            let text = without_counterpart(item, &part, !uses.is_empty());
            notes.warn((&file.name, line(place)), text);
            return;
        }
    };
    if let Some(path) = rule.open_prefix.filter(|_| !uses.is_empty()) {
        let text = format!(
            "`{path}` is compared by whole segments: Traefik also matches `{path}x` and `{path}-x`, Tidegate does not"
        );
        notes.add((&file.name, line(place)), text);
    }
    let mut conditions = rule.conditions;
    if conditions.contains(&ConditionDraft::default()) {
        // One of them matches every request.
        conditions.clear();
    }
    routers.push(LimitedRouter {
        item,
        scope: RuleScope {
            conditions,
            uses: uses.clone(),
        },
        uses,
        priority: priority(item, text),
        entry_points: entry_points(item),
        has_tls: has_tls(item),
        is_whole: middlewares.unknown.is_empty(),
    });
}

/// Returns the warning for a router whose rule has a `part` that Tidegate cannot express.
fn without_counterpart(item: &TraefikItem, part: &str, has_limits: bool) -> String {
    let off = if has_limits {
        "its limits are off in the translation: write their `match`, and remove `mode: off`"
    } else {
        "limits of other routers apply to its requests"
    };
    format!(
        "router {} is not translated: {} has no counterpart; {off}",
        ConfigFault::quote(&item.name),
        ConfigFault::quote(part)
    )
}

/// The middlewares of a router, with those of its chains.
#[derive(Default)]
struct UsedMiddlewares<'i> {
    limits: Vec<&'i TraefikRateLimit>,
    /// Names of which the file has no middleware, and of chains that are too deep.
    unknown: BTreeSet<String>,
    /// All names so far: a chain that contains itself ends there.
    names: BTreeSet<String>,
}

impl<'i> UsedMiddlewares<'i> {
    fn add(
        &mut self,
        name: &str,
        items: &TraefikItems,
        limits: &'i [TraefikRateLimit],
        depth: usize,
    ) {
        let own = name.split('@').next().unwrap_or(name);
        if !self.names.insert(own.to_owned()) {
            return;
        }
        if let Some(limit) = limits.iter().find(|it| it.name == own) {
            self.limits.push(limit);
            return;
        }
        let middleware = items.middlewares.iter().find(|it| it.name == own);
        let Some(middleware) = middleware.filter(|_| depth <= CHAINS_MAX) else {
            self.unknown.insert(name.to_owned());
            return;
        };
        let chain = middleware.get("chain.middlewares");
        for name in chain.map_or(&[][..], |it| &it.values) {
            self.add(name, items, limits, depth + 1);
        }
    }

    /// Warns about the middlewares that the file does not have.
    fn note_unknown(&self, router: &TraefikItem, (file, notes): (&SourceFile, &mut ImportNotes)) {
        for name in &self.unknown {
            let text = format!(
                "router {}: middleware {} is not in this file; if it limits, its limit is missing here",
                ConfigFault::quote(&router.name),
                ConfigFault::quote(name)
            );
            notes.warn((&file.name, line(router.place)), text);
        }
    }
}

impl LimitedRouter<'_> {
    /// Returns true if this router is used for requests that both match. Earlier ones win ties, as `at` and
    /// `other_at` say.
    pub(super) fn beats(&self, at: usize, other: &Self, other_at: usize) -> bool {
        let is_higher = (self.priority, other_at) > (other.priority, at);
        is_higher && self.replaces(other)
    }

    /// Returns true if no request that this router takes reaches `other`. Routers of different entry points,
    /// or of which one is for TLS only, take different requests with the same rule. A router with a
    /// middleware that the file does not have may limit by it, so other limits stay.
    fn replaces(&self, other: &Self) -> bool {
        let is_anywhere = self.entry_points.is_empty() || other.entry_points.is_empty();
        let meets = is_anywhere || !self.entry_points.is_disjoint(&other.entry_points);
        self.is_whole && meets && self.has_tls == other.has_tls
    }
}

/// Returns the priority of a router: the length of its rule by default, as in Traefik.
fn priority(item: &TraefikItem, rule: &str) -> u64 {
    let own = item.text("priority");
    let own = own.and_then(|(text, _)| text.parse().ok());
    own.filter(|it| *it > 0).unwrap_or(rule.len() as u64)
}

/// Returns the entry points of a router, in lower case.
fn entry_points(item: &TraefikItem) -> BTreeSet<String> {
    let named = item.get("entrypoints").into_iter();
    let named = named.flat_map(|field| &field.values);
    named.map(|name| name.to_ascii_lowercase()).collect()
}

/// Returns true if a router takes requests over TLS only.
fn has_tls(item: &TraefikItem) -> bool {
    item.fields.iter().any(|field| {
        let is_off = field.values.first().is_some_and(|it| it == "false");
        field.name.starts_with("tls.") || (field.name == "tls" && !is_off)
    })
}
