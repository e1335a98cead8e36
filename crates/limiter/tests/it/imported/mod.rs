//! The behavior of translated documents of other limiters: request by request, with a clock that the test
//! moves.

mod fluxgate;
mod gateway;
mod traefik_plugin;

use tidegate::{Limiter, ManualClock, MemoryStore, Request, Timestamp};
use tidegate_config::Config;

type Local = Limiter<MemoryStore<ManualClock>>;

/// Returns a limiter with the policies of a translation, and nothing else of it.
fn limiter(part: &str) -> (Local, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let builder = Limiter::builder().clock(clock.clone());
    let limiter = builder.config(config(part)).build();
    (limiter.expect("a limiter"), clock)
}

fn config(part: &str) -> Config {
    Config::from_yaml(part).unwrap_or_else(|errors| panic!("{errors}\nin\n{part}"))
}

/// Returns true if a request passes.
fn passes(limiter: &Local, request: &Request<'_>) -> bool {
    limiter.check_now(request).expect("an answer").is_allowed()
}

/// Returns the limit that decides a request, if any does, without consuming anything.
fn decided_by(limiter: &Local, request: &Request<'_>) -> Option<String> {
    let look = (*request).cost(0);
    let decision = limiter.check_now(&look).expect("an answer");
    decision.binding().map(|it| it.limit().to_owned())
}
