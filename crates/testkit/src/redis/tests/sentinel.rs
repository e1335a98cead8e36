use crate::redis::{BlockingClient, SentinelGroup, ServerProgram};

fn takes_over(group: &SentinelGroup) {
    let master = group.master();
    assert_eq!(master.port(), group.servers()[0].port());
    master.command(&["SET", "rl:a", "1"]).done();
    let dead = group.kill_master();
    let heir = group.await_master_other_than(dead);
    let mut limiter = BlockingClient::connect(heir.port(), &heir.limiter()).unwrap();
    limiter.command(&["SET", "rl:a", "2"]).done();
}

#[test]
fn a_replica_takes_over() {
    takes_over(&SentinelGroup::start());
}

#[test]
fn a_replica_takes_over_with_tls_and_users() {
    let group = super::guarded(SentinelGroup::builder()).start_sentinels("limits");
    assert!(group.url().ends_with("/limits"));
    takes_over(&group);
}

#[test]
fn every_flavour_has_sentinels() {
    for flavour in [ServerProgram::Redis8, ServerProgram::Valkey9] {
        if flavour.available() {
            let options = SentinelGroup::builder().flavour(flavour);
            takes_over(&options.start_sentinels("limits"));
        }
    }
}
