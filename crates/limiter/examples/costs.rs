//! Costs: a read, an upload that is charged by its size, and one that can never pass.
//!
//! Run it with `cargo run -p tidegate --example costs`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use tidegate::{KeyPart, LimitSpec, Limiter, ManualClock, Request, Timestamp};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A manual clock: nothing here waits.
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let megabytes = LimitSpec::new("upload").key(KeyPart::User).band("100/min");
    let limiter = Limiter::builder()
        .clock(clock.clone())
        .limit(megabytes)
        .build()?;
    let ann = Request::new().user("ann");

    for (what, cost) in [("look", 0), ("80 MB", 80), ("30 MB", 30), ("500 MB", 500)] {
        let decision = limiter.check_now(&ann.cost(cost))?;
        let band = decision
            .binding()
            .ok_or("the limit applies to every request")?;
        let answer = match (decision.is_allowed(), band.retry_after()) {
            (true, _) => "allowed".to_owned(),
            (false, Some(wait)) => format!("refused, passes in {wait:?}"),
            (false, None) => "refused, can never pass".to_owned(),
        };
        println!(
            "{what:>7}: {answer}; {} of {} left",
            band.remaining(),
            band.capacity()
        );
    }

    clock.advance_micros(6_000_000);
    println!(
        "30 MB, six seconds later: {:?}",
        limiter.check_now(&ann.cost(30))?.is_allowed()
    );
    Ok(())
}
