//! Members of etcd that hang or disconnect, and the calls to them.

use super::admin::{admin, administrate};
use super::etcd::{Etcd, limits};
use super::kit::{Program, policy};
use super::wire::{Wire, WireMode, WireRequest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::net::SocketAddr;

fn config(members: &[SocketAddr], refresh: &str) -> String {
    let members: Vec<String> = members.iter().map(|it| format!("'http://{it}'")).collect();
    let members = members.join(", ");
    format!(
        "sources: [{{ etcd: {{ endpoints: [{members}] }}, refresh: {refresh}, timeout: 4s }}]\n{}",
        admin()
    )
}

#[tokio::test]
async fn a_hanging_member_prevented_requests_to_the_others() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    // It accepts the connection, and sends nothing.
    let hangs = Wire::to(etcd.client, WireMode::Hangs).await;
    let text = config(&[hangs.address, etcd.client], "200ms");
    let mut program = Program::start(&text).await;
    assert_eq!(program.band("api").await, "5/s");
    let version = etcd.set("policy/api", &policy("api", "6/s")).await;
    program.serves("etcd", &version).await;
    // It is not called first for a change either: the result would be unknown.
    let (status, said) = administrate(&program, "PATCH", "/policies/api", &limits("7/s")).await;
    assert_eq!(status, 200, "{said}");
    assert!(!program.is_stale("etcd").await);
}

#[tokio::test]
async fn a_member_that_hangs_after_a_reply_is_replaced_by_the_next() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    let wire = Wire::to(etcd.client, WireMode::Passes).await;
    let text = config(&[wire.address, etcd.client], "200ms");
    let mut program = Program::start(&text).await;
    assert!(!wire.asked().is_empty(), "it is queried first");
    wire.be(WireMode::Hangs);
    let version = etcd.set("policy/api", &policy("api", "6/s")).await;
    program.serves("etcd", &version).await;
    assert_eq!(program.band("api").await, "6/s");
}

#[tokio::test]
async fn a_change_possibly_made_by_one_member_was_sent_to_another() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    for manner in [WireMode::BreaksOnChanges, WireMode::HangsOnChanges] {
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
            "no other member was queried: {there}"
        );
        assert_eq!(program.band("api").await, "5/s");
    }
}

/// The maximum size of a poll's response, including headers.
const LOOK_MAX: usize = 2_048;

#[tokio::test]
async fn every_version_check_read_all_documents() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    for nth in 0..50 {
        let name = format!("p{nth}");
        etcd.set(&format!("policy/{name}"), &policy(&name, "5/s"))
            .await;
    }
    let wire = Wire::to(etcd.client, WireMode::Passes).await;
    let mut program = Program::start(&config(&[wire.address], "100ms")).await;
    let is_look = |it: &WireRequest| it.path == "/v3/kv/txn" && !it.is_change();
    let loads = || {
        let asked = wire.asked();
        let range = |it: &&WireRequest| it.path == "/v3/kv/range";
        asked.iter().filter(range).count()
    };
    wire.hears(5, is_look).await;
    assert_eq!(loads(), 1, "{:?}", wire.asked());
    // Each change is read, whichever instance makes it, and nothing else.
    let version = etcd.set("policy/p0", &policy("p0", "6/s")).await;
    program.serves("etcd", &version).await;
    etcd.remove("policy/p1").await;
    let (revision, _) = version.split_once('-').unwrap();
    program.serves("etcd", &format!("{revision}-49")).await;
    wire.hears(3, is_look).await;
    assert_eq!(loads(), 3, "{:?}", wire.asked());
    // An instance that makes a change knows its result, with or without the counter.
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
