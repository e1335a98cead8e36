//! The messages, compared with those that prost reads and writes; and their translation.

use super::feed::ReceivedVersion;
use super::messages::{AnyResource, DiscoveryRequest, DiscoveryResponse, TYPE_URL};
use super::resource::{DescriptorResource, DomainResource, RateLimitResource, ResourceReader};
use super::{LoadResult, XdsSource, load, options};
use crate::live::source::{PolicyFetcher, Revision};
use bytes::Bytes;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use envoy_types::pb::google::protobuf::{Any, Struct, value::Kind};
use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitReplace,
};
use proptest::prelude::*;
use prost::Message;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_config::source::{XdsServer, XdsTranslation};
use tidegate_policy::ChargeTime;
use tidegate_policy::tls::ClientTls;

const TRANSLATION: XdsTranslation = XdsTranslation {
    merge_domains: false,
    each: false,
    charge: ChargeTime::EvenIfRefused,
    quota: false,
};

fn server() -> XdsServer {
    XdsServer {
        url: "http://eg:18001".to_owned(),
        node_id: "envoy-ratelimit".to_owned(),
        node_cluster: "edge".to_owned(),
        node_metadata: vec![("zone".to_owned(), "a".to_owned())],
        headers: Vec::new(),
        tls: ClientTls::default(),
        translation: TRANSLATION,
    }
}

fn resource(value: impl Into<Bytes>) -> AnyResource {
    AnyResource {
        type_url: TYPE_URL.to_owned(),
        value: value.into(),
    }
}

/// Returns a limit of this many calls per minute.
fn a_minute(amount: u32) -> RateLimitPolicy {
    RateLimitPolicy {
        unit: 2,
        requests_per_unit: amount,
        ..RateLimitPolicy::default()
    }
}

fn domain(name: &str, limit: RateLimitPolicy) -> RateLimitConfig {
    RateLimitConfig {
        name: name.to_owned(),
        domain: name.to_owned(),
        descriptors: vec![RateLimitDescriptor {
            key: "k1".to_owned(),
            value: "v1".to_owned(),
            rate_limit: Some(limit),
            ..RateLimitDescriptor::default()
        }],
    }
}

/// Returns the translation, or the reason of a rejection.
fn translated(configs: &[RateLimitConfig]) -> Result<String, String> {
    let resources: Vec<_> = configs
        .iter()
        .map(|it| resource(it.encode_to_vec()))
        .collect();
    match load(
        "xds",
        &resources,
        options(TRANSLATION),
        Revision("1".to_owned()),
    ) {
        LoadResult::Part(part) => Ok(part.text),
        LoadResult::Wrong(wrong) => Err(wrong.why),
        LoadResult::Unchanged => panic!("no earlier version"),
    }
}

#[test]
fn requests_are_encoded_as_an_xds_server_expects() {
    let server = server();
    let first = DiscoveryRequest {
        node: Some(&server),
        ..DiscoveryRequest::default()
    };
    let read = discovery::DiscoveryRequest::decode(&*first.encode()).unwrap();
    let node = read.node.unwrap();
    assert_eq!(
        (node.id.as_str(), node.cluster.as_str()),
        ("envoy-ratelimit", "edge")
    );
    assert_eq!(node.user_agent_name, "tidegate");
    let metadata: Struct = node.metadata.unwrap();
    let zone = metadata.fields["zone"].kind.clone();
    assert_eq!(zone, Some(Kind::StringValue("a".to_owned())));
    assert_eq!(
        (read.version_info.as_str(), read.response_nonce.as_str()),
        ("", "")
    );
    assert_eq!(read.type_url, TYPE_URL);
    assert_eq!(read.error_detail, None);

    let long = "ü".repeat(5_000);
    let nack = DiscoveryRequest {
        version: "1",
        nonce: "2",
        error: Some(&long),
        ..DiscoveryRequest::default()
    };
    let read = discovery::DiscoveryRequest::decode(&*nack.encode()).unwrap();
    assert_eq!(
        (read.version_info.as_str(), read.response_nonce.as_str()),
        ("1", "2")
    );
    let detail = read.error_detail.unwrap();
    assert_eq!(detail.code, 3);
    // As many characters as fit.
    assert_eq!(detail.message, "ü".repeat(2_048));
}

#[test]
fn responses_are_read_and_share_the_message() {
    let (one, other) = (domain("a", a_minute(1)), domain("b", a_minute(2)));
    let response = |resources: [&RateLimitConfig; 2]| discovery::DiscoveryResponse {
        version_info: "7".to_owned(),
        nonce: "8".to_owned(),
        type_url: TYPE_URL.to_owned(),
        resources: Vec::from(resources.map(|config| Any {
            type_url: TYPE_URL.to_owned(),
            value: config.encode_to_vec(),
        })),
        ..discovery::DiscoveryResponse::default()
    };
    let message = Bytes::from(response([&one, &other]).encode_to_vec());
    let read = DiscoveryResponse::read(&message).unwrap();
    assert_eq!((read.version.as_str(), read.nonce.as_str()), ("7", "8"));
    let expected = [&one, &other].map(|config| resource(config.encode_to_vec()));
    assert_eq!(read.resources, expected);
    let value = read.resources[0].value.as_ptr();
    assert!(message.as_ptr_range().contains(&value), "it was copied");
    // Regression: a rejected version in another order counted as new, and was rejected again, endlessly.
    let message = Bytes::from(response([&other, &one]).encode_to_vec());
    assert_eq!(DiscoveryResponse::read(&message).unwrap(), read);
}

#[test]
fn too_many_resources_and_descriptors_are_refused() {
    let response = discovery::DiscoveryResponse {
        resources: vec![Any::default(); 10_001],
        ..discovery::DiscoveryResponse::default()
    };
    let error = DiscoveryResponse::read(&response.encode_to_vec().into()).unwrap_err();
    assert_eq!(error.words(), "a response may have at most 10000 resources");
    let many = RateLimitConfig {
        descriptors: vec![RateLimitDescriptor::default(); 100_001],
        ..RateLimitConfig::default()
    };
    let error = translated(&[many]).unwrap_err();
    assert!(error.contains("more than 100000 descriptors"), "{error}");
    let limit = RateLimitPolicy {
        replaces: vec![RateLimitReplace::default(); 100_001],
        ..a_minute(1)
    };
    let error = translated(&[domain("a", limit)]).unwrap_err();
    assert!(error.contains("more than 100000 descriptors"), "{error}");
    let response = discovery::DiscoveryResponse {
        version_info: "1".repeat(1025),
        ..discovery::DiscoveryResponse::default()
    };
    let error = DiscoveryResponse::read(&response.encode_to_vec().into()).unwrap_err();
    assert!(error.words().contains("more than 1024 bytes"));
    let mut deep = RateLimitDescriptor::default();
    for _ in 0..40 {
        deep = RateLimitDescriptor {
            key: "a".to_owned(),
            descriptors: vec![deep],
            ..RateLimitDescriptor::default()
        };
    }
    let deep = RateLimitConfig {
        domain: "a".to_owned(),
        descriptors: vec![deep],
        ..RateLimitConfig::default()
    };
    let error = translated(&[deep]).unwrap_err();
    assert!(error.contains("nested more than 32 levels deep"), "{error}");
}

#[test]
fn a_resource_equals_the_file_for_envoyproxy_ratelimit() {
    let config = RateLimitConfig {
        name: "one".to_owned(),
        domain: "edge \"west\"".to_owned(),
        descriptors: vec![RateLimitDescriptor {
            key: "user".to_owned(),
            rate_limit: Some(RateLimitPolicy {
                unit: 7,
                requests_per_unit: 0,
                name: "weekly".to_owned(),
                replaces: vec![RateLimitReplace {
                    name: "daily".to_owned(),
                }],
                ..RateLimitPolicy::default()
            }),
            shadow_mode: true,
            metadata: Some(Struct::default()),
            descriptors: vec![RateLimitDescriptor {
                key: "path".to_owned(),
                value: "${HOME}".to_owned(),
                rate_limit: Some(RateLimitPolicy {
                    unlimited: true,
                    ..RateLimitPolicy::default()
                }),
                detailed_metric: true,
                quota_mode: true,
                ..RateLimitDescriptor::default()
            }],
            ..RateLimitDescriptor::default()
        }],
    };
    let read = ResourceReader::default()
        .read(&resource(config.encode_to_vec()))
        .unwrap();
    assert_eq!(
        read.to_yaml(),
        r#"domain: "edge \"west\""
descriptors:
  - key: "user"
    rate_limit:
      unit: week
      requests_per_unit: 0
      name: "weekly"
      replaces:
        - name: "daily"
    shadow_mode: true
    metadata: {}
    descriptors:
      - key: "path"
        value: "${HOME}"
        rate_limit:
          unlimited: true
        detailed_metric: true
        quota_mode: true
"#
    );
}

#[test]
fn errors_name_the_resource_and_the_field() {
    let unknown = RateLimitPolicy::default();
    let error = translated(&[domain("good", a_minute(1)), domain("bad", unknown)]).unwrap_err();
    assert_eq!(
        error,
        "xds/bad: descriptors[0].rate_limit.unit: invalid rate limit unit 'unknown' (one of \
         second, minute, hour, day, week, month, year)"
    );
    let twice = [domain("a", a_minute(1)), domain("a", a_minute(2))];
    let error = translated(&twice).unwrap_err();
    assert!(
        error.starts_with("xds/a: domain: duplicate domain 'a'"),
        "{error}"
    );
    let other = AnyResource {
        type_url: "type.googleapis.com/other\n".to_owned(),
        value: Bytes::new(),
    };
    let error = ResourceReader::default().read(&other).unwrap_err();
    assert!(error.starts_with("a resource has the type `type.googleapis.com/other `"));
    let error = ResourceReader::default()
        .read(&resource("\x0f"))
        .unwrap_err();
    assert!(error.starts_with("a resource cannot be read: "), "{error}");
}

#[test]
fn resources_in_another_order_are_the_same_configuration() {
    let (one, other) = (domain("a", a_minute(1)), domain("b", a_minute(2)));
    let text = translated(&[one.clone(), other.clone()]).unwrap();
    assert_eq!(translated(&[other, one]).unwrap(), text);
    let nothing = translated(&[]).unwrap();
    assert!(
        Config::from_yaml(&nothing).unwrap().policies[0]
            .limits
            .iter()
            .all(|it| !it.enabled)
    );
}

// === Against prost ===

/// A server that was restarted may use a version again, and the source of the first one may be gone, as after
/// a change of its certificate: the resources differ even so.
#[tokio::test]
async fn a_version_that_an_earlier_source_had_is_loaded() {
    let source = XdsSource::new(
        "eg",
        &server(),
        Duration::from_mins(1),
        Duration::from_secs(1),
    );
    let source = source.unwrap();
    let feed = source.feed.lock().take().unwrap();
    feed.state.send_modify(|state| {
        let config = domain("a", a_minute(5));
        state.latest = Some(Arc::new(ReceivedVersion {
            serial: 1,
            revision: "1".to_owned(),
            version: "1".to_owned(),
            resources: vec![resource(config.encode_to_vec())],
        }));
    });
    let before = Revision("1".to_owned());
    let LoadResult::Part(part) = source.ask(Some(&before)).await.unwrap() else {
        panic!("it is not the version before");
    };
    assert_ne!(part.version, before);
    source.decided(&before, Ok(()));
    assert_eq!(*feed.verdicts.borrow(), None);
    source.decided(&part.version, Ok(()));
    let verdict = feed.verdicts.borrow().clone();
    assert_eq!(verdict.map(|verdict| verdict.serial), Some(1));
    let again = source.ask(Some(&part.version)).await.unwrap();
    assert!(matches!(again, LoadResult::Unchanged));
}

fn as_read(config: &RateLimitConfig) -> DomainResource {
    DomainResource {
        name: config.name.clone(),
        domain: config.domain.clone(),
        descriptors: config.descriptors.iter().map(descriptor_as_read).collect(),
    }
}

fn descriptor_as_read(descriptor: &RateLimitDescriptor) -> DescriptorResource {
    let limit = descriptor.rate_limit.as_ref();
    DescriptorResource {
        key: descriptor.key.clone(),
        value: descriptor.value.clone(),
        rate_limit: limit.map(|limit| RateLimitResource {
            unit: limit.unit.cast_unsigned(),
            requests_per_unit: limit.requests_per_unit,
            unlimited: limit.unlimited,
            name: limit.name.clone(),
            replaces: limit.replaces.iter().map(|it| it.name.clone()).collect(),
        }),
        descriptors: descriptor
            .descriptors
            .iter()
            .map(descriptor_as_read)
            .collect(),
        shadow_mode: descriptor.shadow_mode,
        detailed_metric: descriptor.detailed_metric,
        quota_mode: descriptor.quota_mode,
        has_metadata: descriptor.metadata.is_some(),
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z]{1,3}", ".{0,4}"]
}

fn policies() -> impl Strategy<Value = RateLimitPolicy> {
    let replaces = prop::collection::vec(text().prop_map(|name| RateLimitReplace { name }), 0..3);
    (any_unit(), 0_u32..5, any::<bool>(), text(), replaces).prop_map(
        |(unit, requests_per_unit, unlimited, name, replaces)| RateLimitPolicy {
            unit,
            requests_per_unit,
            unlimited,
            name,
            replaces,
        },
    )
}

fn any_unit() -> impl Strategy<Value = i32> {
    prop_oneof![0..9, any::<i32>()]
}

fn descriptors() -> impl Strategy<Value = RateLimitDescriptor> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let leaf = (text(), text(), prop::option::of(policies()), flags);
    let leaf = leaf.prop_map(|(key, value, rate_limit, flags)| RateLimitDescriptor {
        key,
        value,
        rate_limit,
        shadow_mode: flags.0,
        detailed_metric: flags.1,
        quota_mode: flags.2,
        ..RateLimitDescriptor::default()
    });
    leaf.prop_recursive(3, 12, 3, |below| {
        let of = (below.clone(), prop::collection::vec(below, 0..3));
        of.prop_map(|(descriptor, descriptors)| RateLimitDescriptor {
            descriptors,
            ..descriptor
        })
    })
}

fn configs() -> impl Strategy<Value = RateLimitConfig> {
    let descriptors = prop::collection::vec(descriptors(), 0..3);
    (text(), text(), descriptors).prop_map(|(name, domain, descriptors)| RateLimitConfig {
        name,
        domain,
        descriptors,
    })
}

proptest! {
    #[test]
    fn a_resource_is_decoded_as_by_prost(
        config in configs(),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>(), any::<bool>())),
    ) {
        let mut bytes = config.encode_to_vec();
        if let (Some((at, byte, cuts)), false) = (damage, bytes.is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if cuts {
                bytes.truncate(at);
            }
        }
        let read = ResourceReader::default().read(&damaged(&bytes));
        match RateLimitConfig::decode(&*bytes) {
            // Metadata is not read, so damage in it is not found.
            Ok(config) => prop_assert_eq!(read.unwrap(), as_read(&config)),
            Err(_) => prop_assert!(read.is_err() || contains_metadata(&read)),
        }
    }

    #[test]
    fn any_resource_is_translated_or_rejected_with_a_reason(config in configs()) {
        // Every accepted translation is a valid configuration; a rejection has a reason.
        if let Err(why) = translated(&[config]) {
            prop_assert!(!why.is_empty());
        }
    }
}

fn damaged(bytes: &[u8]) -> AnyResource {
    resource(Bytes::copy_from_slice(bytes))
}

fn contains_metadata(read: &Result<DomainResource, String>) -> bool {
    format!("{read:?}").contains("has_metadata: true")
}
