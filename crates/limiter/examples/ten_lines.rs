//! A limiter in ten lines: three requests at once for each client, then one per second.
//!
//! Run it with `cargo run -p tidegate --example ten_lines`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use tidegate::{KeyPart, LimitSpec, Limiter, Request};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let per_client = LimitSpec::new("per-client").key(KeyPart::Ip);
    let limiter = Limiter::builder()
        .limit(per_client.band("1/s burst 3"))
        .build()?;
    let request = Request::new().ip("192.0.2.1".parse()?);
    for _ in 0..5 {
        let decision = limiter.check_now(&request)?;
        let band = decision
            .binding()
            .ok_or("the limit applies to every request")?;
        match band.retry_after() {
            _ if decision.is_allowed() => println!("allowed, {} left", band.remaining()),
            Some(wait) => println!(
                "refused by {} for {}; try again in {wait:?}",
                band.limit(),
                band.key()
            ),
            None => println!("refused for good"),
        }
    }
    Ok(())
}
