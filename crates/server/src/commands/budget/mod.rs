//! `tidegate budget`.

mod show;

use super::print;
use super::server_call::{ServerArgs, ServerEndpoint, rejection};
use bytes::Bytes;
use clap::Args;
use http::StatusCode;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use tidegate_config::Environment;
use tidegate_control::buckets::budget::{Budget, BudgetQuery, BudgetReport};
use tidegate_control::buckets::redis_store;
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;
use tidegate_control::live::config_file;

/// The maximum length of a response: a few hundred bytes for each limit.
const RESPONSE_MAX: usize = 16 * 1024 * 1024;

/// The arguments of `tidegate budget`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads without changing anything: from the Redis of a configuration, or from a
running server, also if its buckets are in memory. Limits that need another
identity are listed below the table. Reservations are used until they are
settled. If nothing is stored for the subject, the exit code is 3.

Examples:
  tidegate budget --config tidegate.yaml --key user=ann
  tidegate budget --config tidegate.yaml --key api-key=… attr:tenant=acme
  tidegate budget --admin http://127.0.0.1:8090 --token-env TOKEN \\
    --key user=ann --json")]
pub struct BudgetArgs {
    /// Identities of the subject, as in keys of limits: `user=ann`, `ip=192.0.2.1`, `api-key=…`,
    /// `attr:tenant=acme`. `header:NAME=…` also sets the identities that `client` reads from that
    /// header
    #[arg(long, value_name = "PART=VALUE", required = true, num_args = 1..)]
    pub key: Vec<String>,
    /// Only the limits of this policy
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Configuration file
    #[arg(
        long,
        env = "TIDEGATE_CONFIG",
        value_name = "FILE",
        required_unless_present = "admin"
    )]
    pub config: Option<PathBuf>,
    /// Read from the server with this admin API, and not from Redis
    #[arg(long, value_name = "URL")]
    pub admin: Option<String>,
    /// The call to that server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows the budgets of a subject.
///
/// # Errors
///
/// [`Failure::NotFound`] if the store has no record of a bucket of the subject, and its budgets are printed all the
/// same; [`Failure::Input`] if an argument is invalid; [`Failure::Runtime`] if the store or the server did not answer.
pub fn run(args: &BudgetArgs) -> Result<(), Failure> {
    let environment = FlagEnvironment::new();
    let report = match (&args.admin, &args.config) {
        (Some(url), _) => of_server(args, url, &environment)?,
        (None, Some(file)) => of_redis(args, file, &environment)?,
        // clap requires one of them.
        (None, None) => return Err(Failure::input("pass --config or --admin")),
    };
    if args.json {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::runtime)?;
        print::line(&text)?;
    } else {
        print::styled_line(show::text(&report).trim_end())?;
    }
    if report.is_found() {
        return Ok(());
    }
    Err(Failure::not_found(
        "nothing is stored for this subject: nothing is used, or it is written differently\n   \
         help: pass the exact values that the client sends",
    ))
}

fn of_redis(
    args: &BudgetArgs,
    file: &Path,
    environment: &FlagEnvironment,
) -> Result<BudgetReport, Failure> {
    let config = config_file::load(file, environment)?;
    if config.store.target.redis().is_none() {
        return Err(Failure::input(
            "the store is `memory`: only the serving process can read its buckets\n   help: ask \
             that process: --admin http://127.0.0.1:8090 --token-env VARIABLE",
        ));
    }
    let settings = redis_store::settings(&config)?;
    let query = BudgetQuery {
        policy: args.policy.clone(),
        key: args.key.clone(),
    };
    let budget = Budget::find(&config, &query)?;
    redis_store::wait_for(async {
        let store = redis_store::connect(settings, "tidegate-budget").await?;
        let report = budget.read(&store).await;
        store.connection().close().await;
        report
    })
}

fn of_server(
    args: &BudgetArgs,
    url: &str,
    environment: &dyn Environment,
) -> Result<BudgetReport, Failure> {
    let mut key = Map::new();
    for text in &args.key {
        let Some((part, value)) = text.split_once('=') else {
            return Err(Failure::input(
                "a key needs the name of its part\n   help: write PART=VALUE, such as user=ann",
            ));
        };
        key.insert(part.to_owned(), value.into());
    }
    let mut body = json!({ "key": key });
    if let (Some(policy), Value::Object(members)) = (&args.policy, &mut body) {
        members.insert("policy".to_owned(), policy.clone().into());
    }
    let endpoint = ("/admin/v1/budgets", RESPONSE_MAX);
    let server = ServerEndpoint::new(&args.server, ("--admin", url), endpoint, environment)?;
    let response =
        redis_store::wait_for(async { server.post(Bytes::from(body.to_string())).await })?;
    match response.status {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => {
            let reason = rejection(&response, "report");
            let help = "is --admin the listener `admin`? Its default is http://127.0.0.1:8090";
            return Err(Failure::input(format!("{reason}\n   help: {help}")));
        }
        _ => return Err(rejection(&response, "report")),
    }
    serde_json::from_slice(&response.body).map_err(|_| {
        Failure::runtime("the response is not a report\n   help: is --admin the admin API?")
    })
}
