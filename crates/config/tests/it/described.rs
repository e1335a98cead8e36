//! The meaning of descriptors, domains, quotas and reservations in a configuration.

use crate::good::everything;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_config::NoEnvironment;
use tidegate_core::LimitMode;
use tidegate_policy::matching::{DescriptorPattern, KeyRules, ValuePattern};
use tidegate_policy::respond::RlsHeaders;
use tidegate_policy::{
    Descriptor, DescriptorHits, Evaluate, KeyPart, Policy, Request, ReserveRules, Scratch,
};

fn parse(text: &str) -> Config {
    Config::from_yaml(text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns the names of the limits that a request with one descriptor matches.
fn met(policy: &Policy, entries: &[(&str, &str)]) -> Vec<String> {
    let descriptors = [Descriptor {
        entries,
        hits: DescriptorHits::AsRequest,
        limit: None,
    }];
    let request = Request::new().descriptors(&descriptors);
    let mut scratch = Scratch::default();
    let meeting = policy.meet(&request, &KeyRules::default(), &mut scratch);
    let names = meeting.met.iter().map(|met| policy.limit(met.limit));
    names.map(|limit| limit.unwrap().name.clone()).collect()
}

#[test]
fn descriptors_are_parsed_as_written() {
    let config = everything();
    let edge = config.policy(Some("edge")).unwrap();
    assert_eq!(edge.domain(), "default/eg/http");
    assert_eq!(config.policy(Some("api")).unwrap().domain(), "api");
    let [marketing, files, hops, ldap, posts] = edge.limits.as_slice() else {
        panic!("{:?}", edge.limits)
    };
    let Some(DescriptorPattern::Exactly(entries)) = &marketing.conditions[0].descriptor else {
        panic!("{:?}", marketing.conditions)
    };
    assert_eq!(entries[0].name, "message_type");
    assert_eq!(entries[0].value, ValuePattern::Is("marketing".to_owned()));
    assert_eq!(entries[1].value, ValuePattern::Any);
    let path = &files.conditions[0].descriptor.as_ref().unwrap().entries()[0];
    assert!(matches!(&path.value, ValuePattern::Like(it) if it.as_str() == "files/*"));
    let name = "to_number".to_owned();
    assert_eq!(
        marketing.key,
        [KeyPart::DescriptorEntry { name, nth: None }]
    );
    assert_eq!(files.key, [KeyPart::Descriptor]);
    let (name, nth) = ("hop".to_owned(), Some(2));
    assert_eq!(hops.key, [KeyPart::DescriptorEntry { name, nth }]);
    assert_eq!(
        (files.replaces.as_slice(), ldap.replaces.as_slice()),
        (&[0, 4][..], &[1][..])
    );
    assert!(ldap.is_unlimited() && ldap.template.is_none() && !files.is_unlimited());
    assert!(ldap.matches_each_descriptor() && !posts.matches_each_descriptor());
    assert_eq!(
        met(edge, &[("message_type", "marketing"), ("to_number", "1")]),
        ["marketing"]
    );
    assert_eq!(
        met(edge, &[("user_id", "1"), ("req.method", "POST")]),
        ["posts"]
    );
}

#[test]
fn quotas_and_responses_for_envoy_are_parsed() {
    let config = everything();
    let quotas = config.policy(Some("quotas")).unwrap();
    assert_eq!(quotas.evaluate, Evaluate::Each);
    for limit in &quotas.limits {
        assert!(limit.quota_mode && limit.mode == LimitMode::Enforce);
    }
    assert_eq!(quotas.respond().rls, RlsHeaders::None);
    assert_eq!(
        config.policy(Some("api")).unwrap().respond().rls,
        RlsHeaders::Always
    );
    let plain = parse("policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]");
    assert_eq!(plain.policies[0].respond().rls, RlsHeaders::Refused);
}

#[test]
fn reservations_are_accepted_where_configured() {
    let config = everything();
    let llm = config.policy(Some("llm")).unwrap();
    let told = ReserveRules {
        default_ttl: Duration::from_secs(60),
        max_ttl: Duration::from_secs(300),
    };
    assert_eq!(llm.reserving(), Some(told));
    assert!(llm.refundable() && llm.limits[0].bands[0].quota.is_refundable());
    assert!(llm.limits[0].bands[0].quota.lends());
    assert!(!config.policies[0].limits[0].bands[0].quota.lends());
    assert_eq!(llm.limits[0].bands[0].quota.overdraft(), 20_000);
    assert!(config.policy(Some("api")).unwrap().reserving().is_none());
    for (written, default_ttl, max_ttl) in [
        ("30s", 30, 600),
        ("20min", 1_200, 1_200),
        ("{}", 60, 600),
        ("{ max_ttl: 10s }", 10, 10),
        ("{ default_ttl: 30min }", 1_800, 1_800),
    ] {
        let text = format!(
            "policies: [{{ name: p, reserve: {written}, limits: [{{ name: l, rate: 1/s }}] }}]"
        );
        let expected = ReserveRules {
            default_ttl: Duration::from_secs(default_ttl),
            max_ttl: Duration::from_secs(max_ttl),
        };
        assert_eq!(
            parse(&text).policies[0].reserving(),
            Some(expected),
            "{written}"
        );
    }
}

#[test]
fn unlimited_can_be_set_by_a_variable() {
    let text = "policies: [{ name: p, evaluate: first, limits: [{ name: l, rate: '${RATE:-unlimited}' }] }]";
    let config = parse(text);
    assert!(config.policies[0].limits[0].is_unlimited());
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
}

#[test]
fn descriptor_limits_apply_behind_a_limit_that_matches_every_request() {
    let config = parse(
        "policies: [{ name: p, evaluate: first, limits: [{ name: all, rate: 1/s },
         { name: d, match: { descriptor: [a] }, rate: 1/s }] }]",
    );
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    assert_eq!(met(&config.policies[0], &[("a", "1")]), ["all", "d"]);
}

#[test]
fn a_listener_with_a_timeout_or_a_token_causes_no_warning() {
    for listen in [
        "listen: { grpc: '127.0.0.1:1' }\nstore: { url: 'redis://a', timeout: 10ms }",
        "listen: { grpc: '127.0.0.1:1' }",
        "listen: { http: '127.0.0.1:1' }\nstore: { url: 'redis://a' }",
        "listen: { resp: '127.0.0.1:1' }",
        "listen: { resp: { address: '0.0.0.0:1', token: abcdefgh } }",
        "listen: { resp: { address: '0.0.0.0:1', tls: { cert: /c, key: /k, client_ca: /a } } }",
    ] {
        let text =
            format!("{listen}\npolicies: [{{ name: p, limits: [{{ name: l, rate: 1/s }}] }}]");
        let config = parse(&text);
        assert!(
            config.warnings().is_empty(),
            "{listen}: {:?}",
            config.warnings()
        );
    }
}

#[test]
fn the_examples_of_the_documentation_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config");
    let pages = fs::read_dir(folder).unwrap();
    let pages: Vec<String> = pages
        .map(|page| fs::read_to_string(page.unwrap().path()).unwrap())
        .collect();
    let text = pages.join("\n");
    let blocks = text.split("```yaml\n").skip(1);
    let blocks: Vec<&str> = blocks
        .filter_map(|rest| rest.split("\n```").next())
        .collect();
    let with_descriptors = blocks.iter().filter(|block| block.contains("descriptor"));
    assert!(with_descriptors.count() > 1, "{} blocks", blocks.len());
    for block in blocks.iter().filter(|block| !block.contains("_file")) {
        let config = Config::parse(block, "docs", &NoEnvironment);
        let config = config.unwrap_or_else(|errors| panic!("{errors}\n{block}"));
        if block.contains("descriptor") || block.contains("unlimited") {
            assert!(config.warnings().is_empty(), "{:?}", config.warnings());
        }
    }
}
