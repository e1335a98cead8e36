//! Config sources: their settings, and the composition of their documents.

use std::time::Duration;
use tidegate_config::compose::{ComposedConfig, DocumentKind, NamedText, SourcePart};
use tidegate_config::source::{DocumentFormat, PolicyOrigin, PolicySource, XdsTranslation};
use tidegate_config::{Config, ConfigErrors};
use tidegate_config::{ConfigProblem, Environment, NoEnvironment};
use tidegate_policy::ChargeTime;
use tidegate_policy::documents::{DocumentLocation, DocumentStoreSettings};
use tidegate_policy::plan_source::PlanOrigin;

fn sources(text: &str) -> Result<Vec<PolicySource>, ConfigErrors> {
    let own = NamedText {
        name: "own.yaml",
        text,
    };
    Config::sources_of(own, &|name: &str| {
        (name == "SECRET").then(|| "hush".to_owned())
    })
}

fn part<'a>(name: &'a str, text: &'a str) -> SourcePart<'a> {
    SourcePart {
        named: NamedText { name, text },
        is_translated: false,
        is_separable: false,
        is_trusted: false,
    }
}

fn compose(own: &str, parts: &[SourcePart<'_>]) -> Result<ComposedConfig, ConfigErrors> {
    let own = NamedText {
        name: "own.yaml",
        text: own,
    };
    Config::compose(own, parts, &NoEnvironment)
}

fn policy(name: &str) -> String {
    format!("policies:\n  - name: {name}\n    limits: [{{ name: all, rate: 1/s }}]\n")
}

#[test]
fn every_kind_of_source_is_parsed_with_its_defaults() {
    let sources = sources(
        "
store: { url: 'redis://db' }
sources:
  - keeper: { url: 'https://keeper:8080/', key: ratelimits, password: '${SECRET}' }
  - http: { url: 'https://config/policies.yaml', format: fluxgate }
    refresh: 1min
    timeout: 1s
  - redis: {}
  - { name: other, redis: { url: 'redis://elsewhere', key: mine, writable: false }, required: false }
  - etcd: { endpoints: ['http://127.0.0.1:2379/'] }
",
    );
    let sources = sources.unwrap();
    let names: Vec<&str> = sources.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["keeper", "http", "redis", "other", "etcd"]);
    let PolicyOrigin::Keeper(keeper) = &sources[0].origin else {
        panic!("{sources:?}");
    };
    assert_eq!(
        (
            keeper.url.as_str(),
            keeper.path.as_str(),
            keeper.user.as_str()
        ),
        ("https://keeper:8080", "admin/get", "admin")
    );
    assert_eq!(keeper.password.as_ref().unwrap().expose(), "hush");
    assert_eq!(
        (keeper.policy.as_str(), keeper.format),
        ("traefik", DocumentFormat::TraefikPlugin)
    );
    assert_eq!(
        (sources[0].refresh, sources[0].timeout),
        (Duration::from_secs(30), Duration::from_secs(300))
    );
    assert_eq!(
        (sources[1].refresh, sources[1].timeout),
        (Duration::from_secs(60), Duration::from_secs(1))
    );
    let writable: Vec<bool> = sources.iter().map(PolicySource::is_writable).collect();
    assert_eq!(writable, [false, false, true, false, true]);
    let PolicyOrigin::Shelf(DocumentStoreSettings {
        place: DocumentLocation::Redis { redis, key },
        ..
    }) = &sources[2].origin
    else {
        panic!("{sources:?}");
    };
    assert_eq!(
        (redis.target.to_string().as_str(), key.as_str()),
        ("redis://db:6379", "tidegate:policies")
    );
    assert!(sources[2].required && !sources[3].required);
    assert!(!format!("{sources:?}").contains("hush"));
}

#[test]
fn an_xds_server_has_the_defaults_of_envoyproxy_ratelimit() {
    let text = "
sources:
  - xds: { url: 'eg:18001' }
  - name: other
    xds:
      url: https://[::1]:1/
      node_id: a
      node_cluster: b
      node_metadata: { zone: c }
      headers: { Authorization: Bearer hush }
      evaluate: each
      charge: if-fits
      merge_domains: true
      quota_mode: true
    refresh: 1s
";
    let own = NamedText {
        name: "own.yaml",
        text,
    };
    let sources = Config::sources_of(own, &NoEnvironment).unwrap();
    let [PolicyOrigin::Xds(plain), PolicyOrigin::Xds(full)] =
        [&sources[0].origin, &sources[1].origin]
    else {
        panic!("{sources:?}");
    };
    assert_eq!(
        (plain.url.as_str(), plain.node_id.as_str()),
        ("http://eg:18001", "default")
    );
    assert_eq!(
        (sources[0].name.as_str(), sources[0].kind()),
        ("xds", "xds")
    );
    assert_eq!(
        plain.translation,
        XdsTranslation {
            merge_domains: false,
            each: false,
            charge: ChargeTime::EvenIfRefused,
            quota: false,
        }
    );
    assert_eq!(
        (full.url.as_str(), full.node_cluster.as_str()),
        ("https://[::1]:1", "b")
    );
    assert_eq!(full.node_metadata, [("zone".to_owned(), "c".to_owned())]);
    assert_eq!(full.headers[0].1.expose(), "Bearer hush");
    assert_eq!(
        full.translation,
        XdsTranslation {
            merge_domains: true,
            each: true,
            charge: ChargeTime::IfFits,
            quota: true,
        }
    );
    assert!(!format!("{sources:?}").contains("hush"));
    assert!(sources.iter().all(|it| !it.is_writable()));
}

#[test]
fn errors_of_an_xds_source_name_the_valid_values() {
    for (text, expected) in [
        (
            "sources: [{ xds: { url: eg } }]",
            "`eg` is not the address of an xDS server",
        ),
        (
            "sources: [{ xds: { url: 'https://eg:1/path' } }]",
            "is not the address of an xDS server",
        ),
        (
            "sources: [{ xds: { url: 'http://me:pw@eg:1' } }]",
            "the URL contains a password",
        ),
        (
            "sources: [{ xds: { url: 'eg:1', tls: { ca: a } } }]",
            "`tls` has no effect",
        ),
        (
            "sources: [{ xds: { url: 'eg:1', evaluate: first } }]",
            "limits of envoyproxy/ratelimit have no order",
        ),
        (
            "sources: [{ xds: { url: 'eg:1', charge: always } }]",
            "does not apply to envoyproxy/ratelimit",
        ),
        (
            "sources: [{ xds: { url: 'eg:1', headers: { te: gzip } } }]",
            "is a header of the call itself",
        ),
        (
            "sources: [{ xds: { url: 'eg:1', node_id: '' } }]",
            "cannot be a node id",
        ),
    ] {
        let errors = sources(text).expect_err(text).to_string();
        assert!(errors.contains(expected), "{text}: {errors}");
        assert!(!errors.contains("hunter2"), "{errors}");
    }
}

#[test]
fn errors_of_a_source_name_the_valid_values() {
    for (text, expected) in [
        (
            "sources: [{ keeper: { url: 'https://a' } }]",
            "`sources.keeper` needs `key`",
        ),
        (
            "sources: [{ http: { url: 'ftp://a' } }]",
            "is not an HTTP URL",
        ),
        (
            "sources: [{ http: { url: 'https://me:pw@a' } }]",
            "the URL contains a password",
        ),
        ("sources: [{ redis: {} }]", "the store is not Redis"),
        (
            "sources: [{ redis: { url: 'mysql://a:hunter2@b' } }]",
            "this is not a Redis URL",
        ),
        ("sources: [{ etcd: { endpoints: [] } }]", "is an empty list"),
        (
            "sources: [{ http: { url: 'http://a' } }, { http: { url: 'http://b' } }]",
            "two sources are named `http`",
        ),
        (
            "sources: [{ name: file, http: { url: 'http://a' } }]",
            "is reserved for the config file",
        ),
        ("sources: [{ name: a }]", "needs `keeper`"),
        (
            "sources: [{ http: { url: 'http://a' }, refresh: 1ms }]",
            "too short or too long",
        ),
        (
            "sources: [{ http: { url: 'http://a', format: traefik } }]",
            "did you mean `traefik-plugin`?",
        ),
        (
            "sources: [{ htp: { url: 'http://a' } }]",
            "did you mean `http`?",
        ),
    ] {
        let errors = sources(text).expect_err(text).to_string();
        assert!(errors.contains(expected), "{text}: {errors}");
        assert!(!errors.contains("hunter2"), "{errors}");
    }
}

#[test]
fn lists_are_joined_in_order_and_documents_keep_their_positions() {
    let guard = "guards: [{ name: bad, deny: ip, list: [192.0.2.1] }]";
    let (a, b) = (policy("a"), format!("{}{guard}", policy("b")));
    let composed = compose(&policy("own"), &[part("one", &a), part("two", &b)]).unwrap();
    let names: Vec<&str> = composed
        .config
        .policies
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["own", "a", "b"]);
    let documents: Vec<_> = composed
        .documents
        .iter()
        .map(|it| (it.kind, it.name.as_str(), it.part))
        .collect();
    assert_eq!(
        documents,
        [
            (DocumentKind::Policy, "own", 0),
            (DocumentKind::Policy, "a", 1),
            (DocumentKind::Policy, "b", 2),
            (DocumentKind::Guard, "bad", 2),
        ]
    );
    assert_eq!(
        composed.documents[1].json,
        r#"{"name": "a", "limits": [{"name": "all", "rate": "1/s"}]}"#
    );
}

#[test]
fn a_document_survives_a_round_trip() {
    let own = r#"
policies:
  - name: api
    limits: [{ name: all, key: ip, match: { path: "/a\\b\"c" }, enabled: true, rate: 1/s }]
"#;
    let first = compose(own, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let json = &first.documents[0].json;
    assert!(json.contains(r#""enabled": true"#), "{json}");
    let again = format!("policies: [{json}]");
    let second = compose(&again, &[]).unwrap();
    assert_eq!(*json, second.documents[0].json);
}

#[test]
fn the_version_depends_on_the_texts_alone() {
    let (a, b) = (policy("a"), policy("b"));
    let version = |own: &str, parts: &[SourcePart<'_>]| compose(own, parts).unwrap().version;
    let whole = version(&policy("own"), &[part("one", &a), part("two", &b)]);
    assert_eq!(
        whole,
        version(&policy("own"), &[part("x", &a), part("y", &b)])
    );
    assert_ne!(
        whole,
        version(&policy("own"), &[part("one", &b), part("two", &a)])
    );
    assert_ne!(whole, version(&policy("own"), &[part("one", &a)]));
}

#[test]
fn errors_name_the_source_and_its_line() {
    let bad = "policies:\n  - name: b\n    limits: [{ name: all, rate: fast }]\nstore: {}\n";
    let good = policy("a");
    let errors = compose(&policy("own"), &[part("one", &good), part("two", bad)]).unwrap_err();
    let places: Vec<_> = errors
        .problems()
        .iter()
        .map(|it: &ConfigProblem| (it.file().to_owned(), it.line()))
        .collect();
    let two = |line| ("two".to_owned(), Some(line));
    assert_eq!(places, [two(3), two(4)], "{errors}");
    assert!(
        errors
            .to_string()
            .contains("`store` is not allowed in a config source"),
        "{errors}"
    );
}

#[test]
fn all_unreadable_texts_are_reported_at_once() {
    let errors = compose("policies: [", &[part("one", "{"), part("two", "- a")]).unwrap_err();
    let files: Vec<&str> = errors.problems().iter().map(ConfigProblem::file).collect();
    assert_eq!(files, ["own.yaml", "one", "two"], "{errors}");
}

#[test]
fn an_empty_source_adds_nothing() {
    for nothing in ["", "# nothing yet\n", "{}", "policies:\n", "policies: []"] {
        let composed = compose(&policy("own"), &[part("one", nothing)]);
        let composed = composed.unwrap_or_else(|errors| panic!("{nothing:?}: {errors}"));
        assert_eq!(composed.documents.len(), 1);
    }
    // But at least one source needs policies.
    assert!(compose("store: {}", &[part("one", "{}")]).is_err());
}

#[test]
fn a_source_cannot_read_the_variables_of_the_process() {
    let text = policy("${SECRET}");
    let own = NamedText {
        name: "own.yaml",
        text: &policy("own"),
    };
    let environment = |name: &str| (name == "SECRET").then(|| "hush".to_owned());
    let errors = Config::compose(own, &[part("one", &text)], &environment).unwrap_err();
    let errors = errors.to_string();
    assert!(
        errors.contains("a config source cannot use variables"),
        "{errors}"
    );
    assert!(!errors.contains("hush"), "{errors}");
    let trusted = SourcePart {
        is_trusted: true,
        ..part("one", &text)
    };
    let composed = Config::compose(own, &[trusted], &environment).unwrap();
    assert_eq!(composed.config.policies[1].name, "hush");
}

#[test]
fn documents_do_not_show_possible_secrets() {
    let own = "
policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]
routes:
  - name: all
    upstreams: ['http://127.0.0.1:1']
    policy: api
    request_headers: { set: { x-internal: hunter2 }, remove: [x-debug] }
";
    let composed = compose(own, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let json = &composed.documents[1].json;
    assert!(
        !json.contains("hunter2") && json.contains("x-debug"),
        "{json}"
    );
}

#[test]
fn certificates_are_only_for_sources_with_tls() {
    struct Files;
    impl Environment for Files {
        fn variable(&self, _: &str) -> Option<String> {
            None
        }
        fn file(&self, path: &str) -> Result<String, String> {
            Ok(format!("what {path} holds"))
        }
    }
    let read = |text: &str| {
        let name = "own.yaml";
        Config::sources_of(NamedText { name, text }, &Files)
    };
    let all = "
sources:
  - keeper: { url: 'https://k', key: k, tls: { ca: a } }
  - http: { url: 'https://h', tls: { ca: a, server_name: b } }
  - etcd: { endpoints: ['http://one', 'https://two'], tls: { ca: a, cert: c, key: d } }
";
    let sources = read(all).unwrap();
    for source in &sources {
        let tls = match &source.origin {
            PolicyOrigin::Keeper(keeper) => &keeper.tls,
            PolicyOrigin::Http { tls, .. } => tls,
            PolicyOrigin::Shelf(DocumentStoreSettings {
                place: DocumentLocation::Etcd(etcd),
                ..
            }) => &etcd.tls,
            origin => panic!("{origin:?}"),
        };
        assert_eq!(tls.ca.as_ref().unwrap().expose(), "what a holds");
        assert_eq!(tls.identity.is_some(), source.name == "etcd");
        assert_eq!(tls.server_name.is_some(), source.name == "http");
    }
    let plans = "
policies: [{ name: a, limits: [{ name: l, rate: { plan: p, subject: user, default: refuse } }] }]
plans: [{ name: p, http: { url: 'https://h', tls: { ca: a, server_name: b } } }]
";
    let config = Config::parse(plans, "own.yaml", &Files).unwrap();
    let PlanOrigin::Http { tls, .. } = &config.plans.first().unwrap().origin else {
        panic!("{config:?}")
    };
    assert_eq!(tls.ca.as_ref().unwrap().expose(), "what a holds");
    assert_eq!(tls.server_name.as_deref(), Some("b"));
    for (text, why) in [
        (
            "sources: [{ http: { url: 'http://h', tls: { ca: a } } }]",
            "`tls` has no effect",
        ),
        (
            "sources: [{ keeper: { url: 'https://k', key: k, tls: { cert: a } } }]",
            "`cert` needs `key`",
        ),
        (
            "sources: [{ etcd: { endpoints: 'https://e', tls: { certificate: a } } }]",
            "certificate",
        ),
    ] {
        let errors = read(text).unwrap_err().to_string();
        assert!(errors.contains(why), "{errors}");
    }
}
