//! The servers and locations of a configuration, with the limits that apply to each.

use super::location::NginxLocation;
use super::report::NginxReport;
use super::servers::{self, NginxServer};
use super::source::NginxVariables;
use super::syntax::NginxDirective;
use std::collections::BTreeMap;

/// The status of refused requests in nginx.
const STATUS: u16 = 503;

/// The delay of requests beyond the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NginxDelay {
    /// Requests beyond this number.
    After(u64),
    Never,
}

/// A `limit_req`, with the settings that apply to it.
#[derive(Clone, Debug)]
pub(super) struct NginxLimit<'d> {
    pub(super) zone: String,
    pub(super) burst: u64,
    pub(super) delay: NginxDelay,
    pub(super) is_dry_run: bool,
    pub(super) status: u16,
    pub(super) directive: &'d NginxDirective,
}

/// A server or location.
#[derive(Debug)]
pub(super) struct NginxScope<'d> {
    pub(super) server: usize,
    /// Its place among all scopes, in the order of the files.
    pub(super) order: usize,
    pub(super) location: NginxLocation,
    /// The indices of its limits.
    pub(super) uses: Vec<usize>,
    pub(super) directive: &'d NginxDirective,
}

/// Everything that matters for limits.
#[derive(Debug, Default)]
pub(super) struct NginxHttp<'d> {
    pub(super) zones: BTreeMap<String, &'d NginxDirective>,
    pub(super) variables: NginxVariables<'d>,
    pub(super) limits: Vec<NginxLimit<'d>>,
    pub(super) servers: Vec<NginxServer<'d>>,
    pub(super) scopes: Vec<NginxScope<'d>>,
    /// Proxies whose forwarding headers are trusted, and the header.
    pub(super) real_ip_from: Vec<&'d NginxDirective>,
    pub(super) real_ip_header: Option<&'d NginxDirective>,
    /// The connections that all workers accept together.
    pub(super) connections: u64,
}

/// The settings of a level, which those inside inherit.
#[derive(Clone, Debug, Default)]
struct NginxLevel<'d> {
    limits: Vec<&'d NginxDirective>,
    status: Option<u16>,
    is_dry_run: Option<bool>,
}

impl NginxLevel<'_> {
    /// Returns true if other limits apply than in the level `outer`.
    fn differs(&self, outer: &Self) -> bool {
        let texts = |level: &Self| -> Vec<String> {
            let limits = level.limits.iter();
            limits.map(|it| it.written()).collect()
        };
        texts(self) != texts(outer)
            || (self.status, self.is_dry_run) != (outer.status, outer.is_dry_run)
    }
}

/// Reads a whole configuration, or a file of the `http` level.
pub(super) fn read<'d>(all: &'d [NginxDirective], report: &mut NginxReport) -> NginxHttp<'d> {
    let mut http = NginxHttp {
        connections: connections(all),
        ..NginxHttp::default()
    };
    let mut level: Vec<&NginxDirective> = Vec::new();
    for it in all {
        if it.name == "http" {
            level.extend(it.children());
        } else {
            level.push(it);
        }
    }
    for it in &level {
        http.define(it, report);
    }
    let outer = http.level(&NginxLevel::default(), &level, report);
    for it in &level {
        if it.name == "server" {
            http.server(it, &outer, report);
        }
    }
    if http.servers.is_empty() {
        // A file of the `http` level alone: its limits apply to all servers.
        http.servers.push(NginxServer::only());
        if let Some(first) = outer.limits.first() {
            let uses = http.uses(&outer, report);
            http.scopes.push(NginxScope {
                server: 0,
                order: 0,
                location: NginxLocation::Server,
                uses,
                directive: first,
            });
        }
    }
    servers::choose_defaults(&mut http.servers);
    http
}

/// Returns the number of connections of all workers, where it is written.
fn connections(all: &[NginxDirective]) -> u64 {
    let number = |it: &NginxDirective| it.first().parse::<u64>().ok();
    let workers = all.iter().find(|it| it.name == "worker_processes");
    let workers = workers.and_then(number).unwrap_or(1);
    let events = all.iter().filter(|it| it.name == "events");
    let mut events = events.flat_map(NginxDirective::children);
    let each = events.find(|it| it.name == "worker_connections");
    each.and_then(number).unwrap_or(512).saturating_mul(workers)
}

impl<'d> NginxHttp<'d> {
    /// Reads what the `http` level defines.
    fn define(&mut self, it: &'d NginxDirective, report: &mut NginxReport) {
        match it.name.as_str() {
            "limit_req_zone" => {
                let zone = it.words.iter().find_map(|word| word.strip_prefix("zone="));
                let name = zone.and_then(|zone| zone.split(':').next());
                match name.filter(|name| !name.is_empty()) {
                    Some(name) => {
                        if let Some(first) = self.zones.get(name) {
                            let message = format!("duplicate zone `{name}`");
                            let help = format!("the first is on line {}", first.line);
                            report.error(it, message, &help);
                        } else {
                            self.zones.insert(name.to_owned(), it);
                        }
                    }
                    None => {
                        let help = "write `limit_req_zone KEY zone=NAME:SIZE rate=10r/s;`";
                        report.error(it, "`limit_req_zone` needs `zone=NAME:SIZE`", help);
                    }
                }
            }
            "map" if it.words.len() == 2 => {
                let name = it.words.last().map_or("", String::as_str);
                self.variables.insert(variable(name), it);
            }
            "geo" => {
                let name = it.words.last().map_or("", String::as_str);
                self.variables.insert(variable(name), it);
            }
            _ => {}
        }
    }

    /// Reads the settings of a level. Its own `limit_req` replace all inherited ones.
    fn level(
        &mut self,
        outer: &NginxLevel<'d>,
        inside: &[&'d NginxDirective],
        report: &mut NginxReport,
    ) -> NginxLevel<'d> {
        let mut level = outer.clone();
        let own = inside.iter().filter(|it| it.name == "limit_req");
        let own: Vec<&NginxDirective> = own.copied().collect();
        if !own.is_empty() {
            level.limits = own;
        }
        for it in inside {
            match it.name.as_str() {
                "limit_req_status" => {
                    let status = it.first().parse().ok();
                    match status.filter(|status| (400..=599).contains(status)) {
                        Some(status) => level.status = Some(status),
                        None => report.error(
                            it,
                            format!("`limit_req_status {}` is not supported", it.first()),
                            "expected 400 to 599",
                        ),
                    }
                }
                "limit_req_dry_run" => level.is_dry_run = Some(it.first() == "on"),
                "limit_req_log_level" => report.note(
                    it,
                    "`limit_req_log_level` has no counterpart: set `logs.refusals` to log refused requests",
                ),
                "limit_conn" => report.warn(
                    it,
                    format!("`{}` is not translated: Tidegate cannot limit concurrent requests yet", it.written()),
                ),
                "limit_rate" => report.note(
                    it,
                    "`limit_rate` is not translated: Tidegate limits requests, not bandwidth",
                ),
                "set_real_ip_from" => self.real_ip_from.push(it),
                "real_ip_header" => self.real_ip_header = Some(it),
                _ => {}
            }
        }
        level
    }

    fn server(&mut self, it: &'d NginxDirective, outer: &NginxLevel<'d>, report: &mut NginxReport) {
        let inside: Vec<&NginxDirective> = it.children().iter().collect();
        let level = self.level(outer, &inside, report);
        self.servers.push(NginxServer::read(&inside));
        self.scope(it, NginxLocation::Server, (&level, &inside), report);
        self.locations((&level, None), &inside, report);
        self.warn_rewrites(&inside, report);
    }

    /// Reads the locations inside a server, or inside the location `outer`.
    fn locations(
        &mut self,
        (level, outer): (&NginxLevel<'d>, Option<&NginxLocation>),
        inside: &[&'d NginxDirective],
        report: &mut NginxReport,
    ) {
        for it in inside.iter().filter(|it| it.name == "location") {
            let within: Vec<&NginxDirective> = it.children().iter().collect();
            let inner = self.level(level, &within, report);
            let Some(location) = NginxLocation::read(&it.words) else {
                if within.iter().any(|it| it.name == "limit_req") {
                    let text = format!(
                        "limits in `{}` are not translated: requests reach it only inside nginx",
                        it.written()
                    );
                    report.warn(it, text);
                }
                continue;
            };
            let Some(location) = location.inside(outer) else {
                if inner.differs(level) || within.iter().any(|it| it.name == "return") {
                    let text = format!(
                        "`{}` is not translated: a regular expression inside another location applies only there. Its requests get the limits of that location",
                        it.written()
                    );
                    report.warn(it, text);
                }
                self.warn_lost(level, &within, report);
                continue;
            };
            self.scope(it, location.clone(), (&inner, &within), report);
            self.locations((&inner, Some(&location)), &within, report);
        }
    }

    /// Warns about limits in the locations of one that is not translated.
    fn warn_lost(
        &mut self,
        level: &NginxLevel<'d>,
        inside: &[&'d NginxDirective],
        report: &mut NginxReport,
    ) {
        for it in inside.iter().filter(|it| it.name == "location") {
            let within: Vec<&NginxDirective> = it.children().iter().collect();
            if self.level(level, &within, report).differs(level) {
                let text = format!(
                    "`{}` is not translated, because the location around it is not",
                    it.written()
                );
                report.warn(it, text);
            }
            self.warn_lost(level, &within, report);
        }
    }

    fn scope(
        &mut self,
        it: &'d NginxDirective,
        location: NginxLocation,
        (level, inside): (&NginxLevel<'d>, &[&'d NginxDirective]),
        report: &mut NginxReport,
    ) {
        // `return` answers before limits are checked.
        let returns = inside.iter().any(|it| it.name == "return");
        let uses = if returns {
            Vec::new()
        } else {
            self.uses(level, report)
        };
        self.scopes.push(NginxScope {
            server: self.servers.len().saturating_sub(1),
            order: self.scopes.len(),
            location,
            uses,
            directive: it,
        });
    }

    /// Warns about rewritten paths in the last server, if its locations have different limits.
    fn warn_rewrites(&self, inside: &[&'d NginxDirective], report: &mut NginxReport) {
        let server = self.servers.len().saturating_sub(1);
        let mut uses = self.scopes.iter().filter(|it| it.server == server);
        let first = uses.next().map(|it| &it.uses);
        if uses.all(|it| Some(&it.uses) == first) {
            return;
        }
        let mut blocks = inside.to_vec();
        while let Some(it) = blocks.pop() {
            if matches!(it.name.as_str(), "location" | "if") {
                blocks.extend(it.children());
            } else if changes_path(it) {
                let text = format!(
                    "`{}` changes the path, and with it the location: Tidegate compares the path that the client sent, so requests get the limits of that path",
                    it.written()
                );
                report.warn(it, text);
            }
        }
    }

    /// Returns the indices of the limits of a level.
    fn uses(&mut self, level: &NginxLevel<'d>, report: &mut NginxReport) -> Vec<usize> {
        let mut uses = Vec::new();
        for &directive in &level.limits {
            let Some(limit) = limit(directive, level, report) else {
                continue;
            };
            if !self.zones.contains_key(&limit.zone) {
                let message = format!("zone `{}` is not defined", limit.zone);
                let help = "add the file with its `limit_req_zone`, or import nginx.conf";
                report.error(directive, message, help);
                continue;
            }
            let found = self.limits.iter().position(|it| it.is_same(&limit));
            uses.push(found.unwrap_or_else(|| {
                self.limits.push(limit);
                self.limits.len() - 1
            }));
        }
        uses.sort_unstable();
        uses.dedup();
        uses
    }

    /// Returns the status of most refusals.
    pub(super) fn common_status(&self) -> u16 {
        let statuses = self.limits.iter().map(|it| it.status);
        let counted = statuses.map(|status| {
            let alike = self.limits.iter().filter(|it| it.status == status);
            (alike.count(), status)
        });
        counted.max().map_or(STATUS, |(_, status)| status)
    }

    /// Returns true if requests for unknown hosts are this server's, so that it needs no condition.
    pub(super) fn is_catch_all(&self, server: usize) -> bool {
        let it = self.servers.get(server);
        self.servers.len() == 1 || it.is_none_or(|it| it.is_default() || it.names.is_empty())
    }
}

impl NginxLimit<'_> {
    fn is_same(&self, other: &Self) -> bool {
        (&self.zone, self.burst, self.delay) == (&other.zone, other.burst, other.delay)
            && (self.is_dry_run, self.status) == (other.is_dry_run, other.status)
    }
}

/// Returns true for a `rewrite` that is not a redirect, and for a `try_files` with a fallback.
fn changes_path(it: &NginxDirective) -> bool {
    match (it.name.as_str(), it.words.as_slice()) {
        ("rewrite", [_, to, flags @ ..]) => {
            let is_redirect = |word: &String| matches!(word.as_str(), "redirect" | "permanent");
            let is_away = ["http://", "https://", "$scheme"].map(|start| to.starts_with(start));
            !flags.iter().any(is_redirect) && !is_away.contains(&true)
        }
        ("try_files", [_, .., last]) => !last.starts_with('='),
        _ => false,
    }
}

fn variable(name: &str) -> String {
    name.trim_start_matches('$').to_owned()
}

/// Reads a `limit_req`.
fn limit<'d>(
    it: &'d NginxDirective,
    level: &NginxLevel<'d>,
    report: &mut NginxReport,
) -> Option<NginxLimit<'d>> {
    let mut found = NginxLimit {
        zone: String::new(),
        burst: 0,
        delay: NginxDelay::After(0),
        is_dry_run: level.is_dry_run.unwrap_or(false),
        status: level.status.unwrap_or(STATUS),
        directive: it,
    };
    let mut is_sound = true;
    for word in &it.words {
        let number = |text: &str| text.parse::<u64>().ok().filter(|it| *it <= 1_000_000_000);
        let read = match word.split_once('=') {
            Some(("zone", name)) if !name.is_empty() => {
                name.clone_into(&mut found.zone);
                Some(())
            }
            Some(("burst", text)) => number(text).map(|burst| found.burst = burst),
            Some(("delay", text)) => {
                number(text).map(|delay| found.delay = NginxDelay::After(delay))
            }
            None if word == "nodelay" => {
                found.delay = NginxDelay::Never;
                Some(())
            }
            _ => None,
        };
        if read.is_none() {
            let message = format!("unknown parameter `{word}` of `limit_req`");
            report.error(
                it,
                message,
                "expected `zone=NAME`, `burst=N`, `nodelay` or `delay=N`",
            );
            is_sound = false;
        }
    }
    if found.zone.is_empty() && is_sound {
        report.error(
            it,
            "`limit_req` needs `zone=NAME`",
            "write `limit_req zone=NAME burst=20;`",
        );
        is_sound = false;
    }
    is_sound.then_some(found)
}
