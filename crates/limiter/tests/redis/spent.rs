//! Costs that are known only after the response, as Envoy's `apply_on_stream_done` sends them.

use crate::runtime;
use tidegate::{AnyStore, Descriptor, DescriptorHits, LimitOverride, Limiter, Request};
use tidegate_import::{EnvoyOptions, SourceFile, envoy, limitador};
use tidegate_policy::ChargeTime;
use tidegate_testkit::redis::Server;

const ANN: &[(&str, &str)] = &[("user", "ann")];
const ACME: &[(&str, &str)] = &[("tenant", "acme")];

/// Windows are long, so that none ends while a test runs.
const ENVOY: &str = "
domain: edge
descriptors:
  - { key: user, rate_limit: { unit: year, requests_per_unit: 1000 } }
  - { key: tenant, rate_limit: { unit: year, requests_per_unit: 5000 } }
";

const BY_USER: &str = "
- { namespace: edge, max_value: 1000, seconds: 31536000, conditions: [], variables: ['descriptors[0].user'] }
";

const OF_ALL: &str = "
- { namespace: edge, max_value: 1000, seconds: 31536000, conditions: [], variables: [] }
";

fn file(text: &str) -> SourceFile {
    SourceFile {
        name: "limits.yaml".to_owned(),
        text: text.to_owned(),
    }
}

fn from_envoy(each: bool, charge: ChargeTime) -> String {
    let options = EnvoyOptions {
        each,
        charge,
        ..EnvoyOptions::default()
    };
    let imported = envoy("config", &[file(ENVOY)], options);
    imported.expect("a valid config").to_part()
}

fn from_limitador(text: &str, charge: ChargeTime) -> String {
    let imported = limitador(&file(text), charge);
    imported.expect("a valid config").to_part()
}

/// Runs `scenario` with each of `policies`, with buckets in memory and in Redis.
fn everywhere(policies: &[String], scenario: &impl AsyncFn(&Checks<'_>)) {
    for policies in policies {
        let server = Server::start();
        for url in ["memory", &server.url()] {
            let yaml = format!("store: {{ url: '{url}', timeout: 10s }}\n{policies}");
            runtime().block_on(async {
                let builder = Limiter::builder().yaml(&yaml).expect("a valid config");
                let limiter = builder.start().await.expect("the server is up");
                scenario(&Checks {
                    limiter,
                    yaml: &yaml,
                })
                .await;
            });
        }
    }
}

struct Checks<'a> {
    limiter: Limiter<AnyStore>,
    yaml: &'a str,
}

type DescriptorSpec = (
    &'static [(&'static str, &'static str)],
    DescriptorHits<'static>,
);

impl Checks<'_> {
    async fn check_of(&self, descriptors: &[Descriptor<'_>]) -> bool {
        let request = Request::new().descriptors(descriptors);
        let decision = self.limiter.check(&request).await;
        decision.expect("a decision").is_allowed()
    }

    async fn check(&self, descriptors: &[DescriptorSpec]) -> bool {
        let descriptors = descriptors.iter().map(|(entries, hits)| Descriptor {
            entries,
            hits: *hits,
            limit: None,
        });
        self.check_of(&descriptors.collect::<Vec<_>>()).await
    }

    async fn left(&self, entries: &'static [(&'static str, &'static str)]) -> u64 {
        let descriptors = [Descriptor {
            entries,
            hits: DescriptorHits::Take(0),
            limit: None,
        }];
        let request = Request::new().descriptors(&descriptors);
        let decision = self.limiter.test(&request).await.expect("a decision");
        let band = decision.descriptor(0).expect("a limit");
        band.remaining()
    }

    /// Returns the number of six requests that pass, each with a cost of 600 that is known only afterwards.
    async fn passed(&self) -> usize {
        let mut passed = 0;
        for _ in 0..6 {
            if self.check(&[(ANN, DescriptorHits::Take(0))]).await {
                passed += 1;
                self.check(&[(ANN, DescriptorHits::Take(600))]).await;
            }
        }
        passed
    }
}

fn imported(charge: ChargeTime) -> [String; 4] {
    [
        from_envoy(false, charge),
        from_envoy(true, charge),
        from_limitador(BY_USER, charge),
        from_limitador(OF_ALL, charge),
    ]
}

#[test]
fn a_debit_that_does_not_fit_is_still_charged() {
    everywhere(&imported(ChargeTime::EvenIfRefused), &async |checks| {
        assert_eq!(checks.passed().await, 2, "{}", checks.yaml);
    });
}

#[test]
fn with_if_fits_a_debit_that_does_not_fit_is_not_charged() {
    let all = &imported(ChargeTime::IfFits);
    everywhere(&all[..3], &async |checks| {
        assert_eq!(checks.passed().await, 6, "{}", checks.yaml);
    });
}

/// A check before a request looks the same as a debit after it, so a stated cost must fit.
#[test]
fn a_stated_cost_that_does_not_fit_is_refused() {
    everywhere(&imported(ChargeTime::EvenIfRefused), &async |checks| {
        assert!(checks.check(&[(ANN, DescriptorHits::Take(999))]).await);
        assert!(
            !checks.check(&[(ANN, DescriptorHits::Take(2))]).await,
            "{}",
            checks.yaml
        );
        assert!(
            !checks.check(&[(ANN, DescriptorHits::AsRequest)]).await,
            "1,001 are counted"
        );
    });
}

#[test]
fn an_overdrawn_window_refunds_exactly_its_charge() {
    everywhere(&imported(ChargeTime::EvenIfRefused), &async |checks| {
        for allowed in [true, false, false] {
            assert_eq!(
                checks.check(&[(ANN, DescriptorHits::Take(600))]).await,
                allowed
            );
        }
        let back = |hits| [(ANN, DescriptorHits::GiveBack(hits))];
        // 1,800 of 1,000 are used.
        assert!(checks.check(&back(800)).await);
        assert!(
            !checks.check(&[(ANN, DescriptorHits::Take(0))]).await,
            "{}",
            checks.yaml
        );
        assert!(checks.check(&back(1)).await);
        assert!(
            checks.check(&[(ANN, DescriptorHits::Take(0))]).await,
            "{}",
            checks.yaml
        );
        // Never below the floor, 1,000 below empty.
        assert!(!checks.check(&[(ANN, DescriptorHits::Take(50_000))]).await);
        assert!(checks.check(&back(1_001)).await);
        assert!(
            checks.check(&[(ANN, DescriptorHits::AsRequest)]).await,
            "{}",
            checks.yaml
        );
        assert!(
            !checks.check(&[(ANN, DescriptorHits::AsRequest)]).await,
            "{}",
            checks.yaml
        );
    });
}

/// The usage of one request is charged to all limits of the call, even if one of them refuses.
#[test]
fn an_exceeded_limit_does_not_prevent_debits_of_others() {
    let both = [false, true].map(|each| from_envoy(each, ChargeTime::EvenIfRefused));
    everywhere(&both, &async |checks| {
        let debit = |ann, acme| {
            [
                (ANN, DescriptorHits::Take(ann)),
                (ACME, DescriptorHits::Take(acme)),
            ]
        };
        assert!(checks.check(&debit(1_000, 100)).await);
        for (ann, left) in [(600, 4_800), (0, 4_700)] {
            assert!(!checks.check(&debit(ann, 100)).await, "{ann}");
            assert_eq!(checks.left(ACME).await, left, "{}", checks.yaml);
        }
        // A descriptor that states no hits is charged with those that do.
        let mixed = [
            (ANN, DescriptorHits::AsRequest),
            (ACME, DescriptorHits::Take(100)),
        ];
        assert!(!checks.check(&mixed).await);
        assert_eq!(checks.left(ACME).await, 4_600, "{}", checks.yaml);
    });
}

#[test]
fn a_refused_request_without_a_cost_takes_nothing() {
    let together = [from_envoy(false, ChargeTime::EvenIfRefused)];
    everywhere(&together, &async |checks| {
        assert!(checks.check(&[(ANN, DescriptorHits::Take(1_000))]).await);
        let plain = [
            (ANN, DescriptorHits::AsRequest),
            (ACME, DescriptorHits::AsRequest),
        ];
        let asking = [
            (ANN, DescriptorHits::Take(0)),
            (ACME, DescriptorHits::AsRequest),
        ];
        for refused in [plain, asking] {
            assert!(!checks.check(&refused).await);
            assert_eq!(checks.left(ACME).await, 5_000, "{}", checks.yaml);
        }
        assert!(checks.check(&[(ANN, DescriptorHits::GiveBack(1))]).await);
        assert!(checks.check(&plain).await, "{}", checks.yaml);
    });
}

#[test]
fn a_limit_of_the_request_is_still_charged() {
    let both = [false, true].map(|each| from_envoy(each, ChargeTime::EvenIfRefused));
    everywhere(&both, &async |checks| {
        let told = |hits| {
            [Descriptor {
                entries: ANN,
                hits: DescriptorHits::Take(hits),
                limit: Some(LimitOverride {
                    amount: 1_000,
                    period_us: 31_536_000_000_000,
                }),
            }]
        };
        for (hits, allowed) in [(0, true), (600, true), (0, true), (600, false), (0, false)] {
            assert_eq!(
                checks.check_of(&told(hits)).await,
                allowed,
                "{}",
                checks.yaml
            );
        }
    });
}
