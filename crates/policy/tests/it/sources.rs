//! Sources of policy: how they are written, and what is composed of what they say.

use std::time::Duration;
use tidegate_policy::config::{ConfigProblem, Environment, NoEnvironment};
use tidegate_policy::source::{
    ComposedConfig, DocumentFormat, DocumentKind, DocumentStoreSettings, NamedText, PolicyOrigin,
    PolicySource, ShelfPlace, SourcePart,
};
use tidegate_policy::{Config, ConfigErrors};

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
fn every_kind_of_source_is_read_with_what_is_usual() {
    let sources = sources(
        "
store: { url: 'redis://db' }
sources:
  - keeper: { url: 'https://keeper:8080/', key: ratelimits, password: '${SECRET}' }
  - http: { url: 'https://config/policies.yaml', format: fluxgate, refresh: 1min, timeout: 1s }
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
            keeper.endpoint.as_str(),
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
        (Duration::from_secs(30), Duration::from_mins(5))
    );
    assert_eq!(
        (sources[1].refresh, sources[1].timeout),
        (Duration::from_mins(1), Duration::from_secs(1))
    );
    let writable: Vec<bool> = sources.iter().map(PolicySource::is_writable).collect();
    assert_eq!(writable, [false, false, true, false, true]);
    let PolicyOrigin::Shelf(DocumentStoreSettings {
        place: ShelfPlace::Redis { redis, key },
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
fn what_is_wrong_with_a_source_is_told_with_what_would_be_right() {
    for (text, expected) in [
        (
            "sources: [{ keeper: { url: 'https://a' } }]",
            "`sources.keeper` needs `key`",
        ),
        (
            "sources: [{ http: { url: 'ftp://a' } }]",
            "is not a URL of HTTP",
        ),
        (
            "sources: [{ http: { url: 'https://me:pw@a' } }]",
            "the URL holds a password",
        ),
        ("sources: [{ redis: {} }]", "there is no Redis"),
        (
            "sources: [{ redis: { url: 'mysql://a:hunter2@b' } }]",
            "this is not the URL of a Redis",
        ),
        ("sources: [{ etcd: { endpoints: [] } }]", "is an empty list"),
        (
            "sources: [{ http: { url: 'http://a' } }, { http: { url: 'http://b' } }]",
            "there are two sources with the name `http`",
        ),
        (
            "sources: [{ name: file, http: { url: 'http://a' } }]",
            "is what the file itself is called",
        ),
        ("sources: [{ name: a }]", "needs `keeper`"),
        (
            "sources: [{ http: { url: 'http://a', refresh: 1ms } }]",
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
fn lists_are_joined_in_order_and_every_document_knows_where_it_stands() {
    let guard = "guards: [{ name: bad, refuse: ip, list: [192.0.2.1] }]";
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
fn a_document_reads_the_same_when_it_is_written_back() {
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
fn the_version_is_that_of_the_texts_and_of_nothing_else() {
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
fn what_is_wrong_is_told_by_the_source_and_its_line() {
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
            .contains("`store` is not for a source to say"),
        "{errors}"
    );
}

#[test]
fn texts_that_cannot_be_read_are_told_of_all_at_once() {
    let errors = compose("policies: [", &[part("one", "{"), part("two", "- a")]).unwrap_err();
    let files: Vec<&str> = errors.problems().iter().map(ConfigProblem::file).collect();
    assert_eq!(files, ["own.yaml", "one", "two"], "{errors}");
}

#[test]
fn a_source_may_say_nothing_and_nothing_is_what_it_adds() {
    for nothing in ["", "# nothing yet\n", "{}", "policies:\n", "policies: []"] {
        let composed = compose(&policy("own"), &[part("one", nothing)]);
        let composed = composed.unwrap_or_else(|errors| panic!("{nothing:?}: {errors}"));
        assert_eq!(composed.documents.len(), 1);
    }
    // But somebody has to say something.
    assert!(compose("store: {}", &[part("one", "{}")]).is_err());
}

#[test]
fn what_a_source_says_cannot_refer_to_what_this_process_knows() {
    let text = policy("${SECRET}");
    let own = NamedText {
        name: "own.yaml",
        text: &policy("own"),
    };
    let environment = |name: &str| (name == "SECRET").then(|| "hush".to_owned());
    let errors = Config::compose(own, &[part("one", &text)], &environment).unwrap_err();
    let errors = errors.to_string();
    assert!(
        errors.contains("what a source says cannot refer to variables"),
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
fn documents_do_not_show_what_may_be_a_secret() {
    let own = "
policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]
routes:
  - id: all
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
fn certificates_are_for_sources_that_speak_tls() {
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
                place: ShelfPlace::Etcd(etcd),
                ..
            }) => &etcd.tls,
            origin => panic!("{origin:?}"),
        };
        assert_eq!(tls.ca.as_ref().unwrap().expose(), "what a holds");
        assert_eq!(tls.identity.is_some(), source.name == "etcd");
        assert_eq!(tls.server_name.is_some(), source.name == "http");
    }
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
