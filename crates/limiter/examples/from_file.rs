//! Limits from a configuration file, several on one request, and a reload at runtime.
//!
//! Run it with `cargo run -p tidegate --example from_file`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use tidegate::{Config, Limiter, Request};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/first-limits/tidegate.yaml"
);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Limiter::from_file(FILE)?;
    let request = Request::new()
        .ip("192.0.2.7".parse()?)
        .user("ann")
        .method("POST")
        .path("/login");
    for _ in 0..4 {
        let decision = limiter.check(&request).await?;
        println!(
            "{}",
            if decision.is_allowed() {
                "allowed"
            } else {
                "refused"
            }
        );
        for band in decision.applied() {
            let verdict = if band.is_allowed() { "room" } else { "no room" };
            let (limit, text) = (band.limit(), band.band().unwrap_or("-"));
            println!(
                "  {limit:<12} {text:<14} {verdict}, {} left",
                band.remaining()
            );
        }
    }

    // An invalid config is rejected with all errors; the current one stays in use.
    let mistaken = "policies: [{ name: api, limits: [{ name: x, rate: 5 }] }]";
    if let Err(errors) = Config::from_yaml(mistaken) {
        println!("\nnot taken over:\n{errors}");
    }
    let better = "policies: [{ name: api, limits: [{ name: x, rate: 5/s }] }]";
    limiter.reload(Config::from_yaml(better)?)?;
    println!("reloaded: {:?}", limiter.check(&request).await?.binding());

    // A program that watches its file does this when the file has changed.
    limiter.reload_file(FILE)?;
    println!("and back: {:?}", limiter.check(&request).await?.binding());
    Ok(())
}
