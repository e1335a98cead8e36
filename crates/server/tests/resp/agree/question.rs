//! Generated check requests, in the form of each frontend.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::google::protobuf::UInt64Value;
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tidegate::{AnyStore, Decision, Descriptor, DescriptorHits, LimitOverride, Limiter, Request};

/// Envoy's units with their numbers and their length in seconds.
const UNITS: [(&str, i32, u64); 2] = [("HOUR", 3, 3_600), ("DAY", 4, 86_400)];

/// A check request.
#[derive(Debug, Clone)]
pub(super) struct Question {
    cost: u32,
    descriptors: Vec<DescriptorSpec>,
    /// Fields that Envoy's service lacks, by their names in `TG.CHECK`.
    fields: Vec<(&'static str, &'static str)>,
}

#[derive(Debug, Clone)]
struct DescriptorSpec {
    entries: Vec<(&'static str, &'static str)>,
    hits: DescriptorHits<'static>,
    /// Amount and unit.
    limit: Option<(u32, usize)>,
}

/// Keys and values are few, so that requests match limits, repeatedly.
pub(super) fn trace() -> impl Strategy<Value = Vec<Question>> {
    let fields = (
        of(select(vec!["192.0.2.1", "::1"]).prop_map(|it| ("ip", it))),
        of(select(vec!["ann", "bob", ""]).prop_map(|it| ("user", it))),
        of(select(vec!["/slow", "/slow/1", "/"]).prop_map(|it| ("path", it))),
        of(select(vec!["red", "ü \"\\"]).prop_map(|it| ("attr:team", it))),
    )
        .prop_map(|(ip, user, path, team)| [ip, user, path, team].into_iter().flatten().collect());
    let question = (0..4_u32, vec(described(), 0..4), fields);
    let question = question.prop_map(|(cost, descriptors, fields)| Question {
        cost,
        descriptors,
        fields,
    });
    vec(question, 1..24)
}

fn described() -> impl Strategy<Value = DescriptorSpec> {
    let entry = (
        select(vec!["a", "a", "b"]),
        select(vec!["x", "x", "xy", "y", ""]),
    );
    let hits = prop_oneof![
        4 => Just(DescriptorHits::AsRequest),
        2 => (0..4_u64).prop_map(DescriptorHits::Take),
        1 => (1..4_u64).prop_map(DescriptorHits::GiveBack),
    ];
    let limit = weighted(0.1, (0..4_u32, 0..UNITS.len()));
    (vec(entry, 1..3), hits, limit).prop_map(|(entries, hits, limit)| DescriptorSpec {
        entries,
        hits,
        limit,
    })
}

impl Question {
    /// Removes what Envoy's service cannot express, if it is among the frontends: it needs a cost
    /// of at least one, and a descriptor.
    pub(super) fn said_by(mut self, is_whole: bool) -> Self {
        if !is_whole {
            self.fields.clear();
            self.cost = self.cost.max(1);
            if self.descriptors.is_empty() {
                self.descriptors.push(DescriptorSpec {
                    entries: vec![("a", "x")],
                    hits: DescriptorHits::AsRequest,
                    limit: None,
                });
            }
        }
        self
    }

    /// Decides with the library.
    pub(super) async fn ask(&self, limiter: &Limiter<AnyStore>) -> Decision {
        let descriptors: Vec<Descriptor<'_>> =
            self.descriptors.iter().map(|it| it.told()).collect();
        let field = |name: &str| {
            let found = self.fields.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| *value)
        };
        let team: Vec<_> = field("attr:team")
            .map(|it| ("team", it))
            .into_iter()
            .collect();
        let request = Request {
            ip: field("ip").map(|it| it.parse().unwrap()),
            user: field("user"),
            path: field("path"),
            attributes: &team,
            cost: u64::from(self.cost).into(),
            descriptors: &descriptors,
            ..Request::new()
        };
        limiter.check(&request).await.unwrap()
    }

    /// Returns the form for `/v1/check`.
    pub(super) fn json(&self) -> Value {
        let mut json = json!({ "cost": self.cost, "attributes": {} });
        for (name, value) in &self.fields {
            match name.split_once(':') {
                Some((_, name)) => json["attributes"][name] = (*value).into(),
                None => json[name] = (*value).into(),
            }
        }
        json["descriptors"] = self.descriptors.iter().map(DescriptorSpec::json).collect();
        json
    }

    /// Returns the form for `TG.CHECK`.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec!["TG.CHECK".to_owned(), String::new()];
        let mut say = |name: &str, value: String| words.extend([name.to_owned(), value]);
        for (name, value) in &self.fields {
            say(name, (*value).to_owned());
        }
        say("cost", self.cost.to_string());
        if !self.descriptors.is_empty() {
            say("descriptors", self.json()["descriptors"].to_string());
        }
        words
    }

    /// Returns the form for Envoy's service.
    pub(super) fn call(&self) -> RateLimitRequest {
        RateLimitRequest {
            domain: "agreed".to_owned(),
            descriptors: self
                .descriptors
                .iter()
                .map(DescriptorSpec::message)
                .collect(),
            hits_addend: self.cost,
        }
    }

    /// Returns the form for `/json`.
    pub(super) fn call_json(&self) -> Value {
        let descriptors: Vec<Value> = self
            .descriptors
            .iter()
            .map(DescriptorSpec::call_json)
            .collect();
        json!({ "domain": "agreed", "hitsAddend": self.cost, "descriptors": descriptors })
    }
}

impl DescriptorSpec {
    fn told(&self) -> Descriptor<'_> {
        let limit = |(amount, unit): (u32, usize)| LimitOverride {
            amount: amount.into(),
            period_us: UNITS[unit].2 * 1_000_000,
        };
        Descriptor {
            entries: &self.entries,
            hits: self.hits,
            limit: self.limit.map(limit),
        }
    }

    fn json(&self) -> Value {
        let mut json = json!({ "entries": self.entries() });
        match self.hits {
            DescriptorHits::AsRequest => {}
            DescriptorHits::Take(hits) => json["hits"] = hits.into(),
            DescriptorHits::GiveBack(hits) => json["hits"] = (-i64::try_from(hits).unwrap()).into(),
            DescriptorHits::Units(_) => panic!("Envoy has no units"),
        }
        if let Some((amount, unit)) = self.limit {
            json["limit"] = json!({ "amount": amount, "period_ms": UNITS[unit].2 * 1_000 });
        }
        json
    }

    fn call_json(&self) -> Value {
        let mut json = json!({ "entries": self.entries() });
        let (hits, is_negative) = self.addend();
        if let Some(hits) = hits {
            json["hitsAddend"] = hits.into();
            json["isNegativeHits"] = is_negative.into();
        }
        if let Some((amount, unit)) = self.limit {
            json["limit"] = json!({ "requestsPerUnit": amount, "unit": UNITS[unit].0 });
        }
        json
    }

    fn message(&self) -> RateLimitDescriptor {
        let entry = |(key, value): &(&str, &str)| Entry {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        let (hits, is_negative) = self.addend();
        RateLimitDescriptor {
            entries: self.entries.iter().map(entry).collect(),
            limit: self.limit.map(|(amount, unit)| RateLimitOverride {
                requests_per_unit: amount,
                unit: UNITS[unit].1,
            }),
            hits_addend: hits.map(|value| UInt64Value { value }),
            is_negative_hits: is_negative,
        }
    }

    fn entries(&self) -> Vec<Value> {
        let entry = |(key, value): &(&str, &str)| json!({ "key": key, "value": value });
        self.entries.iter().map(entry).collect()
    }

    /// Returns the stated hits, if any, and true if they are a refund.
    fn addend(&self) -> (Option<u64>, bool) {
        match self.hits {
            DescriptorHits::AsRequest => (None, false),
            DescriptorHits::Take(hits) => (Some(hits), false),
            DescriptorHits::GiveBack(hits) => (Some(hits), true),
            DescriptorHits::Units(_) => panic!("Envoy has no units"),
        }
    }
}
