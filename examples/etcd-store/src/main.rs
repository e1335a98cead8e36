//! Five requests an hour for each client, counted in etcd: `etcd-store HOST:PORT REQUESTS`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use etcd_store::{Etcd, WallClock};
use tidegate::{KeyPart, LimitSpec, Limiter, Request};
use tidegate_core::cas::CasStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, requests] = arguments.as_slice() else {
        return Err("usage: etcd-store HOST:PORT REQUESTS".into());
    };
    let store = CasStore::new(Etcd::new(address, "tidegate/", WallClock::default()));
    let per_client = LimitSpec::new("per-client").key(KeyPart::Ip);
    let limiter = Limiter::builder()
        .limit(per_client.band("5/h"))
        .build_with(store)?;
    let request = Request::new().ip("192.0.2.1".parse()?);
    for _ in 0..requests.parse()? {
        let decision = limiter.check(&request).await?;
        let verdict = if decision.is_allowed() {
            "allowed"
        } else {
            "refused"
        };
        println!("{verdict} by {:?}", decision.decided_by());
    }
    Ok(())
}
