//! All combinations of flags.

use super::choices::SetupChoices;
use super::{ChosenKey, ChosenProxy, DeploymentKind, InitArgs, next, text};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use tidegate_config::{Config, NoEnvironment};

fn args() -> InitArgs {
    InitArgs {
        run: None,
        proxy: None,
        upstream: None,
        store: None,
        limit: None,
        key: None,
        output: PathBuf::from("tidegate.yaml"),
        yes: true,
        force: false,
    }
}

/// Returns all combinations of flags.
fn combinations() -> Vec<InitArgs> {
    let mut all = Vec::new();
    for run in DeploymentKind::value_variants() {
        for proxy in ChosenProxy::value_variants() {
            for key in ChosenKey::value_variants() {
                for store in ["memory", "redis://127.0.0.1:6379", "rediss://a,b"] {
                    for limit in ["100/min", "10/s burst 50", "1000/h"] {
                        all.push(InitArgs {
                            run: Some(*run),
                            proxy: Some(*proxy),
                            key: Some(*key),
                            store: Some(store.to_owned()),
                            limit: Some(limit.to_owned()),
                            ..args()
                        });
                    }
                }
            }
        }
    }
    all
}

#[test]
fn every_combination_is_valid_or_rejected_as_unsupported() {
    let (mut written, mut rejected) = (0, 0);
    for args in combinations() {
        let choices = match SetupChoices::of_flags(&args) {
            Ok(choices) => choices,
            Err(failure) => {
                let error = failure.to_string();
                assert!(
                    error.starts_with("--proxy does not fit"),
                    "{args:?}: {error}"
                );
                rejected += 1;
                continue;
            }
        };
        let text = text::configuration(&choices, &args.output);
        let config = Config::parse(&text, "tidegate.yaml", &NoEnvironment);
        let config = config.unwrap_or_else(|errors| panic!("{args:?}: {errors}\n{text}"));
        assert!(
            config.warnings().is_empty(),
            "{args:?}: {:?}\n{text}",
            config.warnings()
        );
        assert_eq!(config.written().count(), 1, "{text}");
        let steps = next::steps(&choices, Path::new("tidegate.yaml"));
        assert!(steps.contains("tidegate.yaml"), "{steps}");
        written += 1;
    }
    // A gateway and a library have no proxy in front that sends check requests.
    assert_eq!((written, rejected), ((6 + 6 + 1 + 1) * 27, (5 + 5) * 27));
}

#[test]
fn wrong_flags_are_named_and_passwords_are_not_written() {
    for (change, expected) in [
        (
            InitArgs {
                limit: Some("often".into()),
                ..args()
            },
            "--limit: `often` is not a rate",
        ),
        (
            InitArgs {
                store: Some("disk".into()),
                ..args()
            },
            "--store: ",
        ),
        (
            InitArgs {
                store: Some("redis://:hunter2@db".into()),
                ..args()
            },
            "--store: it contains a password",
        ),
        (
            InitArgs {
                run: Some(DeploymentKind::Gateway),
                upstream: Some("localhost".into()),
                ..args()
            },
            "--upstream: ",
        ),
        (
            InitArgs {
                upstream: Some("http://a".into()),
                ..args()
            },
            "--upstream does not fit",
        ),
    ] {
        let error = SetupChoices::of_flags(&change).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_password_is_written_as_its_variable() {
    let args = InitArgs {
        store: Some("redis://:${REDIS_PASSWORD}@db".into()),
        ..args()
    };
    let choices = SetupChoices::of_flags(&args).unwrap();
    let text = text::configuration(&choices, &args.output);
    assert!(
        text.contains("store: \"redis://:${REDIS_PASSWORD}@db\""),
        "{text}"
    );
}
