//! The simulator, in process.

use std::io::Read;
use tidegate_config::NoEnvironment;
use tidegate_control::failure::Failure;
use tidegate_server::simulate::engine::Engine;
use tidegate_server::simulate::formats::InputFormat;
use tidegate_server::simulate::progress::Audience;
use tidegate_server::simulate::run::{DecisionOutput, Job, NoteVerbosity};

/// The result of a simulation.
pub(crate) struct SimulationResult {
    pub(crate) ended: Result<(), Failure>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Simulates `input` of an unknown format.
pub(crate) fn run(config: &str, input: impl Read) -> SimulationResult {
    run_as(None, config, input)
}

/// Simulates `input` of this format.
pub(crate) fn run_as(
    format: Option<InputFormat>,
    config: &str,
    input: impl Read,
) -> SimulationResult {
    let engine = Engine::new(config, "config.yaml", &NoEnvironment, None);
    let job = Job {
        name: "input".to_owned(),
        total_bytes: None,
        format,
        decisions: DecisionOutput::Written,
        notes: NoteVerbosity::Told,
        audience: Audience::Nobody,
        is_colored: false,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = tidegate_server::simulate::run::run(
        job,
        input,
        engine.expect("a valid config"),
        &mut out,
        &mut err,
    );
    SimulationResult {
        ended,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}
