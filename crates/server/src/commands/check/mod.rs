//! `tidegate check`.

mod question;
mod verdict;

use super::print;
use super::server_call::{ServerArgs, ServerEndpoint};
use crate::styles::{BAD, GOOD, paint};
use bytes::Bytes;
use clap::Args;
use question::QuestionArgs;
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;
use tidegate_control::sources::once::wait_for;

/// The maximum length of a response. Decisions have a few hundred bytes, and more with descriptors.
const RESPONSE_MAX: usize = 256 * 1024;

/// The maximum of `--count`.
const COUNT_MAX: u32 = 10_000;

/// The arguments of `tidegate check`.
#[derive(Args, Debug)]
#[command(after_help = "\
Sends POST /v1/check and prints the decision. The request is charged like any
other; --cost 0 only looks. Secrets come from a variable or a file.

Exit code: 0 allowed, 4 refused (with --count: any of them), 2 the server
rejected the request, 1 no decision.

Examples:
  tidegate check --ip 192.0.2.1
  tidegate check --ip 192.0.2.1 --path /login --method POST --count 6
  tidegate check --policy llm --user ann --cost 0 --json
  tidegate check --api-key-env API_KEY --url https://limits.example.com")]
pub struct CheckArgs {
    /// Request to check.
    #[command(flatten)]
    pub question: QuestionArgs,
    /// HTTP API of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// The call.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Send the request N times, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    pub count: u32,
    /// Print each decision as JSON, on a line
    #[arg(long)]
    pub json: bool,
}

/// Asks a server to check a request, and prints its decisions.
///
/// # Errors
///
/// [`Failure::Refused`] if any request was refused; [`Failure::Input`] if an argument is invalid, or the
/// server rejects the check request; [`Failure::Runtime`] if the server made no decision.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let environment = FlagEnvironment::new();
    let body = Bytes::from(args.question.body(&environment)?);
    let endpoint = ("/v1/check", RESPONSE_MAX);
    let server = ServerEndpoint::new(&args.server, ("--url", &args.url), endpoint, &environment)?;
    let refused = wait_for(async {
        let mut refused = 0;
        for _ in 0..args.count {
            let response = server.post(body.clone()).await?;
            let decision = verdict::read(&response)?;
            if args.json {
                print::line(&String::from_utf8_lossy(response.body.trim_ascii()))?;
            } else {
                print::styled_line(&decision.to_string())?;
            }
            refused += u32::from(!decision.allowed);
        }
        Ok(refused)
    })?;
    if args.count > 1 && !args.json {
        let allowed = paint(GOOD, &format!("{} allowed", args.count - refused));
        let refused = paint(BAD, &format!("{refused} refused"));
        print::styled_line(&format!("{allowed}, {refused}"))?;
    }
    if refused == 0 {
        Ok(())
    } else {
        Err(Failure::Refused)
    }
}
