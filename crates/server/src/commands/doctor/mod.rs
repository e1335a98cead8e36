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

use super::print;
use clap::Args;
use finding::{Finding, FindingLevel};
use std::path::PathBuf;
use tidegate_config::Config;
use tidegate_control::buckets::redis_store;
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;
use tidegate_control::live::config_source::ConfigInput;
use tidegate_policy::text::counted;
use tidegate_telemetry::redis::info;

/// The arguments of `tidegate doctor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Connects to every master and checks eviction, persistence, replication, clocks,
latency and permissions. Writes nothing. A check that the Redis user is not
allowed to run is reported as skipped, not as failed. A config source that is
unavailable is reported; the other checks run without it. Secrets are never
printed.

Exit code: 0 if nothing failed, 1 otherwise; with --strict, warnings count as
failures.

Examples:
  tidegate doctor --config tidegate.yaml
  tidegate doctor --config tidegate.yaml --json |
    jq '.findings[] | select(.mark != \"ok\")'")]
pub struct DoctorArgs {
    /// Configuration file
    #[arg(long, env = "TIDEGATE_CONFIG", value_name = "FILE")]
    pub config: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Treat warnings as failures
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
///
/// # Errors
///
/// [`Failure::Input`] if the configuration is invalid, [`Failure::Runtime`] if a check failed, or warned with
/// `--strict`. The report is printed in both cases of the latter.
pub fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let source = ConfigInput {
        file: Some(&args.config),
        envoy: None,
        source: None,
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
        let message = "the store is `memory`: there is no Redis to check";
        return Ok(Report {
            store,
            findings: vec![Finding::ok("store", message)],
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
    let help = "`serve` does not start without it unless the source has `required: false`";
    Finding::fail("sources", text).help(help)
}

fn verdict(report: &Report, is_strict: bool) -> Result<(), Failure> {
    let count = |mark| report.findings.iter().filter(|it| it.mark == mark).count();
    let (failed, warned) = (count(FindingLevel::Fail), count(FindingLevel::Warn));
    if failed > 0 {
        let failed = counted(failed, "check", "checks");
        return Err(Failure::runtime(format!("{failed} failed")));
    }
    if is_strict && warned > 0 {
        let warned = counted(warned, "warning", "warnings");
        return Err(Failure::runtime(format!("{warned} with --strict")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Finding, Report, show, verdict};

    /// Regression: it printed `1 checks failed` and `1 warnings`.
    #[test]
    fn one_finding_was_counted_like_many() {
        let mut report = Report {
            store: "redis".to_owned(),
            findings: vec![Finding::warn("clock", "off")],
            acl: None,
        };
        let failure = verdict(&report, true).unwrap_err();
        assert_eq!(failure.to_string(), "1 warning with --strict");
        assert!(show::text(&report).contains("\n0 ok, 1 warning, 0 failed, 0 not checked"));
        report.findings = vec![Finding::fail("clock", "off")];
        assert_eq!(
            verdict(&report, false).unwrap_err().to_string(),
            "1 check failed"
        );
        report.findings.push(Finding::fail("acl", "none"));
        assert_eq!(
            verdict(&report, false).unwrap_err().to_string(),
            "2 checks failed"
        );
    }
}
