//! `tidegate doctor`.
//!
//! | module | what it is |
//! |---|---|
//! | `examine` | the queries to the servers, which change nothing |
//! | `node`, `info` | the data of a server |
//! | `clock`, `latency` | measurements |
//! | `finding` | findings: ok, warn, fail, could not see |
//! | `judge_*` | the judgement of the data, without I/O |
//! | `acl` | the required commands, and the line that grants them |
//! | `shelves` | other data in the same Redis, and the commands that it requires |
//! | `show` | the output as a table, or JSON |

mod acl;
mod clock;
mod examine;
mod finding;
mod judge_cluster;
mod judge_memory;
mod judge_persistence;
mod judge_replication;
mod judge_sentinel;
mod latency;
mod node;
mod permissions;
mod shelves;
mod show;

use super::{print, redis_store};
use crate::config_source::ConfigInput;
use crate::environment::FlagEnvironment;
use crate::failure::Failure;
use crate::telemetry::redis::info;
use clap::Args;
use finding::{Finding, FindingLevel};
use std::path::PathBuf;
use tidegate_policy::Config;

/// The arguments of `tidegate doctor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Connects as the configuration says, asks every master, writes nothing, and says what would break a
promise: eviction, persistence, replication, clocks, latency, missing permissions. What the user may
not ask for is reported as such, and is no failure. A source of policy that does not answer is reported,
and the rest examined without what it says. Secrets are never printed.

Exit code: 0 if nothing failed, 1 otherwise; with --strict, warnings count as failures.

Examples:
  tidegate doctor --config tidegate.yaml
  tidegate doctor --config tidegate.yaml --json | jq '.findings[] | select(.mark != \"ok\")'")]
pub struct DoctorArgs {
    /// The configuration
    #[arg(long, env = "TIDEGATE_CONFIG", value_name = "FILE")]
    pub config: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Fail on warnings, too
    #[arg(long)]
    pub strict: bool,
}

/// The result of an examination.
#[derive(Debug)]
struct Report {
    /// The store, without its secrets.
    store: String,
    findings: Vec<Finding>,
    /// The ACL lines that grant the required commands.
    acl: Option<acl::AclLines>,
}

/// Examines the store that the configuration names.
pub fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let source = ConfigInput {
        file: Some(&args.config),
        envoy: None,
    };
    let (config, unread) = source.load_anyway(&FlagEnvironment::new())?;
    let mut report = report(&config)?;
    report.findings.extend(unread.as_ref().map(unread_sources));
    let text = if args.json {
        serde_json::to_string_pretty(&show::json(&report)).map_err(Failure::runtime)?
    } else {
        show::text(&report)
    };
    print::line(text.trim_end())?;
    verdict(&report, args.strict)
}

fn report(config: &Config) -> Result<Report, Failure> {
    let store = config.store.target.to_string();
    let Some(redis) = config.store.target.redis() else {
        let told = "buckets live in the process that serves: there is no server to examine";
        return Ok(Report {
            store,
            findings: vec![Finding::ok("store", told)],
            acl: None,
        });
    };
    let settings = redis_store::settings(config)?;
    let examined =
        redis_store::wait_for(async { Ok(examine::examine(settings, config, redis).await) })?;
    Ok(Report { store, ..examined })
}

/// Returns the finding that config sources could not be read: their limits are not part of the
/// examination.
fn unread_sources(why: &Failure) -> Finding {
    let why = why.to_string();
    let text = why.lines().next().unwrap_or_default();
    let help = "`serve` does not start without it unless the source says `required: false`";
    Finding::fail("sources", text).help(help)
}

fn verdict(report: &Report, is_strict: bool) -> Result<(), Failure> {
    let count = |mark| report.findings.iter().filter(|it| it.mark == mark).count();
    let (failed, warned) = (count(FindingLevel::Fail), count(FindingLevel::Warn));
    if failed > 0 {
        return Err(Failure::runtime(format!("{failed} of the checks failed")));
    }
    if is_strict && warned > 0 {
        return Err(Failure::runtime(format!(
            "{warned} warnings, and --strict was given"
        )));
    }
    Ok(())
}
