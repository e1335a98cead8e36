//! `tidegate simulate`.

use crate::commands::import::EnvoyArgs;
use crate::simulate::engine::Engine;
use crate::simulate::formats::InputFormat;
use crate::simulate::progress::Audience;
use crate::simulate::run::{DecisionOutput, Job, NoteVerbosity, run as simulate};
use crate::styles;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;

/// The arguments of `tidegate simulate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints decisions to standard output, one line of JSON each, in the order of the
requests. Progress and the summary go to standard error.

Examples:
  tidegate simulate --config tidegate.yaml --trace trace.jsonl > decisions.jsonl
  tidegate simulate --config tidegate.yaml --trace access.log --summary-only
  zcat access.log.*.gz | tidegate simulate --config tidegate.yaml --trace -

A line of a trace:
  {\"at_ms\": 1700000000000, \"ip\": \"192.0.2.1\", \"path\": \"/api\", \"cost\": 2}")]
pub struct SimulateArgs {
    /// Configuration file
    #[arg(
        long,
        env = "TIDEGATE_CONFIG",
        value_name = "FILE",
        required_unless_present = "envoy"
    )]
    pub config: Option<PathBuf>,
    /// Files of envoyproxy/ratelimit.
    #[command(flatten)]
    pub envoy: EnvoyArgs,
    /// Trace or access log; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// Format of its lines
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = FormatArg::Auto)]
    pub format: FormatArg,
    /// Policy for lines that name none. Default: the first one
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Write no decisions, only the summary
    #[arg(long)]
    pub summary_only: bool,
    /// Write no summary and no notes, only decisions
    #[arg(long, conflicts_with_all = ["summary_only", "progress"])]
    pub quiet: bool,
    /// Show progress even if standard error is not a terminal
    #[arg(long)]
    pub progress: bool,
}

/// The format of a trace's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Detected from the first lines
    Auto,
    /// Check requests with their time, `at_ms`
    Trace,
    /// The common or combined format of nginx and Apache
    Combined,
    /// JSON of Traefik, Envoy or Caddy
    Json,
}

/// Runs the simulation.
///
/// # Errors
///
/// [`Failure::Input`] if the configuration or a line of a trace is invalid, or the input has no known format;
/// [`Failure::Runtime`] if the output cannot be written. Invalid lines of an access log are skipped and counted.
pub fn run(args: SimulateArgs) -> Result<(), Failure> {
    let environment = FlagEnvironment::new();
    let xds = args.envoy.source_once()?;
    let source = args.envoy.input(args.config.as_deref(), xds.as_ref());
    let texts = source.read(&environment).map_err(Failure::from)?;
    let name = source.name();
    let audience = audience(&args);
    let parse = || texts.parse(&environment).map_err(Failure::input);
    let engine = Engine::of(&parse, &name, args.policy)?;
    let (input, total_bytes) = open(&args.trace)?;
    let job = Job {
        name: args.trace.display().to_string(),
        total_bytes,
        format: match args.format {
            FormatArg::Auto => None,
            FormatArg::Trace => Some(InputFormat::Trace),
            FormatArg::Combined => Some(InputFormat::Combined),
            FormatArg::Json => Some(InputFormat::Json),
        },
        decisions: if args.summary_only {
            DecisionOutput::Counted
        } else {
            DecisionOutput::Written
        },
        notes: if args.quiet {
            NoteVerbosity::Kept
        } else {
            NoteVerbosity::Told
        },
        audience,
        is_colored: styles::on_stderr(),
    };
    simulate(
        job,
        input,
        engine,
        &mut io::stdout().lock(),
        &mut io::stderr().lock(),
    )
}

fn audience(args: &SimulateArgs) -> Audience {
    let is_terminal = io::stderr().is_terminal();
    match (args.quiet, is_terminal, args.progress) {
        (true, ..) | (false, false, false) => Audience::Nobody,
        (false, true, _) => Audience::Terminal,
        (false, false, true) => Audience::Log,
    }
}

/// Opens a trace, and returns its length if known.
fn open(path: &Path) -> Result<(Box<dyn Read>, Option<u64>), Failure> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin().lock()), None));
    }
    let unreadable = |error| Failure::input(format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    Ok((Box::new(file), metadata.is_file().then_some(metadata.len())))
}
