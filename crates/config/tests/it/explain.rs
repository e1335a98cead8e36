//! The exact meaning of configurations.

use crate::good::Files;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate_config::Config;
use tidegate_config::{costs, explain};

/// `tests/good/NAME.txt` describes `NAME.yaml`.
#[test]
fn everything_is_explained() {
    let files = files();
    assert!(files.len() >= 3, "only {} files found", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.display().to_string();
        let config =
            Config::parse(&text, &name, &Files).unwrap_or_else(|errors| panic!("{errors}"));
        let words = explain(&config);
        tidegate_testkit::golden::compare(&file.with_extension("txt"), &words);
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good");
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect()
}

/// Returns the warnings about `a+b` in a Cluster whose store is as `store` sets it.
fn joined(store: &str) -> Vec<String> {
    let text = format!(
        "
store: {{ url: 'redis://a,b', redis: {{ {store} }} }}
routes: [{{ name: all, upstreams: 'http://a', policy: [a, b] }}]
policies:
  - {{ name: a, limits: [{{ name: x, key: ip, rate: 1/s }}] }}
  - {{ name: b, limits: [{{ name: y, key: ip, rate: 1/s }}, {{ name: z, key: user, rate: 1/s }}, {{ name: w, rate: 1/s }}] }}
"
    );
    let config = Config::from_yaml(&text).unwrap_or_else(|errors| panic!("{errors}"));
    let told = costs(&config);
    let explained = explain(&config);
    assert_eq!(explained.matches("Limit `x`").count(), 1, "{explained}");
    assert_eq!(explained.matches("Policy `a+b`").count(), 1, "{explained}");
    told
}

#[test]
fn the_cost_of_joined_policies_is_explained_with_savings() {
    let by_subject = joined("tag: subject");
    let [_, _, both] = by_subject.as_slice() else {
        panic!("{by_subject:?}")
    };
    for said in [
        "Policy `a+b`: a request costs one round trip, in parallel to up to 3 groups",
        "`x` and `y` by `ip`",
        "let more limits have the same key; or write `tag: policy`",
    ] {
        assert!(both.contains(said), "{both}");
    }
    let by_policy = joined("tag: policy");
    let [alone, _, both] = by_policy.as_slice() else {
        panic!("{by_policy:?}")
    };
    assert!(alone.contains("one round trip to one group"), "{alone}");
    for said in [
        "to up to 2 groups",
        "`x` by `policy a`",
        "write these limits into one policy",
    ] {
        assert!(both.contains(said), "{both}");
    }
    assert!(!both.contains("tag: policy"), "that is so already: {both}");
    let open = joined("layout: open, template: 'x:{policy}:{limit}:{key}'");
    assert!(open[2].contains("`x:a:x:<ip>`"), "{open:?}");
}
