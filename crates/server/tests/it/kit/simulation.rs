//! The simulator, in process.

use std::io::Read;
use tidegate_policy::config::NoEnvironment;
use tidegate_server::failure::Failure;
use tidegate_server::simulate::engine::Engine;
use tidegate_server::simulate::formats::InputFormat;
use tidegate_server::simulate::progress::Audience;
use tidegate_server::simulate::run::{DecisionOutput, Job, NoteVerbosity};

/// What came of it.
pub(crate) struct Simulated {
    pub(crate) ended: Result<(), Failure>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Simulates `input`, whatever it looks like.
pub(crate) fn run(config: &str, input: impl Read) -> Simulated {
    run_as(None, config, input)
}

/// Simulates `input`, which looks like this.
pub(crate) fn run_as(format: Option<InputFormat>, config: &str, input: impl Read) -> Simulated {
    let engine = Engine::new(config, "config.yaml", &NoEnvironment, None);
    let job = Job {
        name: "input".to_owned(),
        total_bytes: None,
        format,
        decisions: DecisionOutput::Written,
        notes: NoteVerbosity::Told,
        audience: Audience::Nobody,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = tidegate_server::simulate::run::run(
        job,
        input,
        engine.expect("a sound configuration"),
        &mut out,
        &mut err,
    );
    Simulated {
        ended,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}
