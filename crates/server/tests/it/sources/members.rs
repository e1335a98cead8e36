//! Members of etcd that hang or hang up, and what is asked of them.

use super::admin::{admin, administrate};
use super::etcd::{Etcd, limits};
use super::kit::{Program, policy};
use super::wire::{Asked, Manner, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::net::SocketAddr;

fn config(members: &[SocketAddr], refresh: &str) -> String {
    let members: Vec<String> = members.iter().map(|it| format!("'http://{it}'")).collect();
    let members = members.join(", ");
    format!(
        "sources: [{{ etcd: {{ endpoints: [{members}], refresh: {refresh}, timeout: 4s }} }}]\n{}",
        admin()
    )
}

#[tokio::test]
async fn a_member_that_hung_kept_the_others_from_being_asked() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    // It is connected to, and says nothing.
    let hangs = Wire::to(etcd.client, Manner::Hangs).await;
    let text = config(&[hangs.address, etcd.client], "200ms");
    let mut program = Program::start(&text).await;
    assert_eq!(program.band("api").await, "5/s");
    let version = etcd.set("policy/api", &policy("api", "6/s")).await;
    program.serves("etcd", &version).await;
    // Nor is it asked first for a change, of which it would never be known what became.
    let (status, said) = administrate(&program, "PATCH", "/policies/api", &limits("7/s")).await;
    assert_eq!(status, 200, "{said}");
    assert!(!program.is_stale("etcd").await);
}

#[tokio::test]
async fn a_member_that_hangs_when_it_has_answered_is_left_for_the_next() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    let wire = Wire::to(etcd.client, Manner::Passes).await;
    let text = config(&[wire.address, etcd.client], "200ms");
    let mut program = Program::start(&text).await;
    assert!(!wire.asked().is_empty(), "it is asked first");
    wire.be(Manner::Hangs);
    let version = etcd.set("policy/api", &policy("api", "6/s")).await;
    program.serves("etcd", &version).await;
    assert_eq!(program.band("api").await, "6/s");
}

#[tokio::test]
async fn a_change_was_asked_for_twice_where_the_first_member_may_have_made_it() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    for manner in [Manner::BreaksOnChanges, Manner::HangsOnChanges] {
        let first = Wire::to(etcd.client, manner).await;
        let program = Program::start(&config(&[first.address, etcd.client], "1h")).await;
        let (status, said) = administrate(&program, "PATCH", "/policies/api", &limits("6/s")).await;
        assert!(status >= 500, "{status} {said}");
        assert!(
            said.to_string()
                .contains("it is not known whether it was changed"),
            "{said}"
        );
        let key = json!({ "key": STANDARD.encode("/tidegate/policy/api") });
        let there = etcd.call("kv/range", &key).await.unwrap();
        assert_eq!(
            there["kvs"][0]["version"], "1",
            "nobody else was asked: {there}"
        );
        assert_eq!(program.band("api").await, "5/s");
    }
}

/// How many bytes one look is answered by at most, head and all.
const LOOK_MAX: usize = 2_048;

#[tokio::test]
async fn all_of_it_was_read_at_every_look_though_nothing_had_changed() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    for nth in 0..50 {
        let name = format!("p{nth}");
        etcd.set(&format!("policy/{name}"), &policy(&name, "5/s"))
            .await;
    }
    let wire = Wire::to(etcd.client, Manner::Passes).await;
    let mut program = Program::start(&config(&[wire.address], "100ms")).await;
    let is_look = |it: &Asked| it.path == "/v3/kv/txn" && !it.is_change();
    let loads = || {
        let asked = wire.asked();
        let range = |it: &&Asked| it.path == "/v3/kv/range";
        asked.iter().filter(range).count()
    };
    wire.hears(5, is_look).await;
    assert_eq!(loads(), 1, "{:?}", wire.asked());
    // Each change is read, whoever makes it, and nothing after it.
    let version = etcd.set("policy/p0", &policy("p0", "6/s")).await;
    program.serves("etcd", &version).await;
    etcd.remove("policy/p1").await;
    let (revision, _) = version.split_once('-').unwrap();
    program.serves("etcd", &format!("{revision}-49")).await;
    wire.hears(3, is_look).await;
    assert_eq!(loads(), 3, "{:?}", wire.asked());
    // Whoever changes something knows what that comes to, be the count there already or not.
    for rate in ["7/s", "8/s"] {
        let (status, said) = administrate(&program, "PATCH", "/policies/p0", &limits(rate)).await;
        assert_eq!(status, 200, "{said}");
        wire.hears(3, is_look).await;
        assert_eq!(loads(), 3, "{:?}", wire.asked());
        assert_eq!(program.band("p0").await, rate);
    }
    for asked in wire.asked() {
        let is_small = asked.answered <= LOOK_MAX;
        assert!(is_small || asked.path == "/v3/kv/range", "{asked:?}");
    }
}
