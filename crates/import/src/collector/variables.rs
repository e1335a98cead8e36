//! The known variables and their values.

use super::env::{ImportedVariable, add_error};
use crate::SourceFile;
use crate::document::ImportErrors;
use crate::note::ImportNotes;
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_policy::text::{ConfigFault, closest, duration};

/// The values of the variables, with the collector's documented defaults.
#[derive(Debug)]
pub(super) struct CollectorVariables {
    /// The URL of Redis, with its scheme; `None` if the URL must stay in the variable.
    pub(super) redis: Option<String>,
    pub(super) projects_set: String,
    pub(super) projects_refresh: String,
    pub(super) blacklist_set: String,
    /// The refresh interval of the blacklist, which is also the length of a period.
    pub(super) blacklist_refresh: String,
    pub(super) threshold: u64,
    pub(super) period_map: String,
    pub(super) total_map: String,
    /// The database of plans, if there is one, and the refresh interval of the plans.
    pub(super) plans: Option<String>,
    pub(super) plans_refresh: String,
    /// True if bans raise an alert.
    pub(super) alerts: bool,
}

/// All known variables.
const KNOWN: [&str; 13] = [
    "REDIS_URL",
    "REDIS_PASSWORD",
    "REDIS_DISABLED_PROJECT_SET",
    "REDIS_BLACKLIST_IP_SET",
    "REDIS_ALL_IPS_MAP",
    "REDIS_CURRENT_PERIOD_MAP",
    "BLOCKED_PROJECTS_UPDATE_PERIOD",
    "BLACKLIST_UPDATE_PERIOD",
    "BLACKLIST_THRESHOLD",
    "ACCOUNTS_MONGODB_URI",
    "PROJECTS_LIMITS_UPDATE_PERIOD",
    "NOTIFY_URL",
    "TOKEN_UPDATE_PERIOD",
];

/// Variables without a counterpart, each with the reason.
const LEFT_OUT: [(&str, &str); 10] = [
    (
        "TOKEN_UPDATE_PERIOD",
        "`client` sets the source of the project",
    ),
    ("LISTEN", "`listen` sets the listeners"),
    ("METRICS_LISTEN", "`listen.admin` serves metrics"),
    (
        "MAX_REQUEST_BODY_SIZE",
        "`body_bytes` of a route limits bodies",
    ),
    ("MAX_", "the collector checks messages itself"),
    ("LOG_LEVEL", "`--log-level` sets the log level"),
    ("HAWK_", "errors are only logged"),
    ("BROKER_URL", "the collector forwards events itself"),
    ("NON_DEFAULT_QUEUES", "the collector forwards events itself"),
    ("", "Tidegate has no equivalent"),
];

/// Notes for every translation.
const BANS: &str = "a ban lasts one hour; in the collector it is permanent, which is `for: 0`";
const PROJECTS: &str = "set the project in `client.attributes.project`, or send it with each \
    check request: the collector looks up its tokens in its database";

/// The ranges of refresh intervals and of the length of a period.
const REFRESHES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_hours(24);
const PERIODS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);

/// The longest name of a key in Redis, in bytes.
const KEY_MAX: usize = 512;

/// Reads the values of the variables.
pub(super) fn read(
    file: &SourceFile,
    variables: &[ImportedVariable],
    notes: &mut ImportNotes,
    wrong: &mut ImportErrors,
) -> CollectorVariables {
    let mut reading = VariableReader {
        file,
        variables,
        notes,
        wrong,
    };
    reading.check_names();
    reading.note(1, BANS);
    reading.note(1, PROJECTS);
    let values = CollectorVariables {
        redis: reading.redis(),
        projects_set: reading.name("REDIS_DISABLED_PROJECT_SET", "DisabledProjectsSet"),
        projects_refresh: reading.period("BLOCKED_PROJECTS_UPDATE_PERIOD", "5s", &REFRESHES),
        blacklist_set: reading.name("REDIS_BLACKLIST_IP_SET", "BlacklistIPsSet"),
        blacklist_refresh: reading.period("BLACKLIST_UPDATE_PERIOD", "15s", &PERIODS),
        threshold: reading.threshold(),
        period_map: reading.name("REDIS_CURRENT_PERIOD_MAP", "CurrentPeriodMap"),
        total_map: reading.name("REDIS_ALL_IPS_MAP", "AllIPsMap"),
        plans: reading.plans(),
        plans_refresh: reading.period("PROJECTS_LIMITS_UPDATE_PERIOD", "30s", &REFRESHES),
        alerts: reading.alerts(),
    };
    reading.check_distinct(&values);
    values
}

/// The reader's input and output.
struct VariableReader<'r> {
    file: &'r SourceFile,
    variables: &'r [ImportedVariable],
    notes: &'r mut ImportNotes,
    wrong: &'r mut ImportErrors,
}

impl VariableReader<'_> {
    /// Returns the value and the line of a variable, unless it is empty.
    fn get(&self, name: &str) -> Option<(&str, usize)> {
        let variable = self.variables.iter().find(|it| it.name == name)?;
        let value = variable.value.trim();
        (!value.is_empty()).then_some((value, variable.line))
    }

    fn error(&mut self, line: usize, fault: ConfigFault) {
        add_error(self.file, line, fault, self.wrong);
    }

    fn note(&mut self, line: usize, text: impl Into<String>) {
        self.notes.add((&self.file.name, line), text);
    }

    /// Checks that there is a known variable, and notes all unknown ones.
    fn check_names(&mut self) {
        let is_known = |it: &&ImportedVariable| KNOWN.contains(&it.name.as_str());
        if !self.variables.iter().any(|it| is_known(&it)) {
            let fault = ConfigFault::new("no variable of the collector found");
            self.error(1, fault.help("for example REDIS_URL=localhost:6379"));
        }
        for variable in self.variables {
            let name = variable.name.as_str();
            let is_heard = KNOWN.contains(&name) && name != "TOKEN_UPDATE_PERIOD";
            if is_heard {
                continue;
            }
            if let Some(meant) = closest(name, KNOWN)
                && meant != name
            {
                let fault = ConfigFault::new(format!("the collector has no variable `{name}`"));
                self.error(
                    variable.line,
                    fault.help(format!("did you mean `{meant}`?")),
                );
                continue;
            }
            let reason = LEFT_OUT.iter().find(|(prefix, _)| name.starts_with(prefix));
            let why = reason.map_or("Tidegate has no equivalent", |(_, why)| *why);
            self.note(variable.line, format!("`{name}` is skipped: {why}"));
        }
    }

    /// Returns the URL of Redis. A password is never copied.
    fn redis(&mut self) -> Option<String> {
        if let Some((_, line)) = self.get("REDIS_PASSWORD") {
            let text = "`REDIS_PASSWORD` is not copied: set it in the environment, or use \
                `store.redis.password_file`";
            self.note(line, text);
        }
        let Some((url, line)) = self.get("REDIS_URL") else {
            return Some("redis://localhost:6379".to_owned());
        };
        if url.contains('@') {
            let text = "`REDIS_URL` contains a password and is not copied: set it in the \
                environment";
            self.note(line, text);
            return None;
        }
        if url.contains("://") {
            return Some(url.to_owned());
        }
        Some(format!("redis://{url}"))
    }

    /// Returns the name of a key in Redis.
    fn name(&mut self, variable: &str, usual: &str) -> String {
        let Some((name, line)) = self.get(variable) else {
            return usual.to_owned();
        };
        let name = name.to_owned();
        if name.len() > KEY_MAX || name.chars().any(char::is_control) {
            let fault = ConfigFault::new(format!("`{variable}` cannot be the name of a key"));
            self.error(
                line,
                fault.help(format!("use up to {KEY_MAX} printable characters")),
            );
        }
        name
    }

    fn period(&mut self, variable: &str, usual: &str, range: &RangeInclusive<Duration>) -> String {
        let Some((text, line)) = self.get(variable) else {
            return usual.to_owned();
        };
        let text = text.to_owned();
        let is_sound = duration(&text).is_ok_and(|length| range.contains(&length));
        if !is_sound {
            let found = ConfigFault::quote(&text);
            let fault = ConfigFault::new(format!(
                "`{variable}` is {found}, which is not a duration in range"
            ));
            let help = format!("expected {:?} to 24h, for example {usual}", range.start());
            self.error(line, fault.help(help));
        }
        text
    }

    fn threshold(&mut self) -> u64 {
        let Some((text, line)) = self.get("BLACKLIST_THRESHOLD") else {
            return 10_000;
        };
        let number = text.parse::<u64>().ok().filter(|number| *number > 0);
        if number.is_none() {
            let found = ConfigFault::quote(text);
            let message =
                format!("`BLACKLIST_THRESHOLD` is {found}; expected a whole number above 0");
            self.error(line, ConfigFault::new(message));
        }
        number.unwrap_or(1)
    }

    /// Returns the database of plans.
    fn plans(&mut self) -> Option<String> {
        let Some((uri, line)) = self.get("ACCOUNTS_MONGODB_URI") else {
            let text = "`ACCOUNTS_MONGODB_URI` is missing: project limits come from a file; \
                write `plans.yaml`, or use `mongodb`";
            self.note(1, text);
            return None;
        };
        let path = uri
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once('/'));
        let database = path.map_or("", |(_, path)| path.split('?').next().unwrap_or_default());
        let database = database.to_owned();
        let text = "`ACCOUNTS_MONGODB_URI` is not copied, because it may contain a password: it \
            is read from the environment";
        self.note(line, text);
        let is_sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if database.is_empty() || !database.chars().all(is_sound) {
            let fault = ConfigFault::new("`ACCOUNTS_MONGODB_URI` contains no database");
            self.error(
                line,
                fault.help("for example mongodb://localhost:27017/hawk"),
            );
        }
        Some(database)
    }

    fn alerts(&mut self) -> bool {
        let Some((_, line)) = self.get("NOTIFY_URL") else {
            return false;
        };
        let text = "`NOTIFY_URL` is not copied, because it is a secret: it is read from the \
            environment";
        self.note(line, text);
        true
    }

    /// Checks that sets and maps have different names.
    fn check_distinct(&mut self, said: &CollectorVariables) {
        let names = [
            ("REDIS_DISABLED_PROJECT_SET", &said.projects_set),
            ("REDIS_BLACKLIST_IP_SET", &said.blacklist_set),
            ("REDIS_CURRENT_PERIOD_MAP", &said.period_map),
            ("REDIS_ALL_IPS_MAP", &said.total_map),
        ];
        for (at, (variable, name)) in names.iter().enumerate() {
            let mut before = names.iter().take(at);
            if let Some((other, _)) = before.find(|(_, taken)| taken == name) {
                let line = self.get(variable).or_else(|| self.get(other));
                let line = line.map_or(1, |(_, line)| line);
                let message = format!("`{variable}` and `{other}` are the same key");
                self.error(line, ConfigFault::new(message));
            }
        }
    }
}
