use super::fixtures::{all, first, limit_if, met, on_header, pattern};
use crate::matching::{DescriptorPattern, EntryPattern, HostPattern};
use crate::{Condition, Descriptor, DescriptorHits, Limit, Request};
use proptest::prelude::*;

/// The reference for many limits: each one separately, where nothing is indexed.
fn met_one_by_one(limits: &[Limit], request: &Request<'_>) -> String {
    let met = limits.iter().map(|it| met(&all(vec![it.clone()]), request));
    let met: Vec<String> = met.filter(|name| !name.is_empty()).collect();
    met.join(" ")
}

fn any_condition() -> impl Strategy<Value = Condition> {
    let value = || prop::sample::select(vec!["", "a", "B", "c", "dd"]);
    let path = prop::sample::select(vec!["/", "/x", "/x/*", "/**/y$", "$"]);
    let host = prop::sample::select(vec!["a.org", "B.org", "*.org"]);
    let header = (
        prop::sample::select(vec!["X-One", "x-one", "X-Two"]),
        value(),
    );
    let parts = (
        prop::option::weighted(0.3, path),
        prop::collection::vec(header, 0..3),
        prop::collection::vec((Just("attr"), value()), 0..2),
        prop::collection::vec(host, 0..3),
        prop::option::weighted(0.2, (Just("entry"), value())),
    );
    parts.prop_map(|(path, headers, attributes, hosts, entry)| {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Condition {
            path: path.map(pattern),
            headers: headers.into_iter().map(owned).collect(),
            attributes: attributes.into_iter().map(owned).collect(),
            hosts: { hosts.into_iter() }
                .map(|host| HostPattern::parse(host).unwrap())
                .collect(),
            descriptor: entry.map(|(name, value)| {
                DescriptorPattern::Holds(vec![EntryPattern::new(name, value)])
            }),
            ..Condition::default()
        }
    })
}

fn any_limits() -> impl Strategy<Value = Vec<Limit>> {
    let conditions = prop::collection::vec(any_condition(), 0..4);
    prop::collection::vec(conditions, 0..90).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        let limits = numbered.map(|(nth, conditions)| Limit {
            conditions,
            ..limit_if(&format!("l{nth}"), Condition::default())
        });
        limits.collect()
    })
}

proptest! {
    #[test]
    fn many_limits_match_like_each_one_alone(
        limits in any_limits(),
        path in prop::option::of(prop::sample::select(vec!["/", "/x", "/x/z", "/x/y"])),
        host in prop::option::of(prop::sample::select(vec!["a.org", "A.org:80", "b.org", "c.org"])),
        headers in prop::collection::vec(
            (prop::sample::select(vec!["x-one", "X-ONE", "x-two"]),
             prop::sample::select(vec!["", "a", "A", "b", "C", "dD", "eee"])),
            0..4,
        ),
        attributes in prop::collection::vec(
            (Just("attr"), prop::sample::select(vec!["", "a", "B", "c"])), 0..3,
        ),
        entries in prop::collection::vec(
            (Just("entry"), prop::sample::select(vec!["", "a", "B", "dd"])), 0..3,
        ),
    ) {
        let descriptors: Vec<Descriptor<'_>> = entries
            .iter()
            .map(|entry| Descriptor { entries: std::slice::from_ref(entry), hits: DescriptorHits::default(), limit: None })
            .collect();
        let request = Request {
            path,
            host,
            headers: &headers,
            attributes: &attributes,
            descriptors: &descriptors,
            ..Request::new()
        };
        let expected = met_one_by_one(&limits, &request);
        prop_assert_eq!(met(&all(limits), &request), expected);
    }
}

#[test]
fn of_many_limits_the_first_written_decides() {
    let mut limits: Vec<Limit> = (0..100)
        .map(|nth| {
            limit_if(
                &format!("t{nth}"),
                on_header("X-Tenant", &format!("T{nth}")),
            )
        })
        .collect();
    let everybody = limit_if("everybody", Condition::default());
    limits.insert(50, everybody);
    let policy = first(limits);
    for (tenant, expected) in [
        ("t7", "t7"),
        ("T49", "t49"),
        // Written after the limit for all tenants.
        ("t50", "everybody"),
        ("t99", "everybody"),
        ("nobody", "everybody"),
        ("", "everybody"),
    ] {
        let headers = [("x-tenant", tenant)];
        let request = Request::new().headers(&headers);
        assert_eq!(met(&policy, &request), expected, "{tenant}");
    }
    assert_eq!(met(&policy, &Request::new()), "everybody");
}

#[test]
fn a_value_sent_twice_matches_its_limit_once() {
    let limits =
        (0..100).map(|nth| limit_if(&format!("t{nth}"), on_header("x", &format!("{nth}"))));
    let policy = all(limits.collect());
    let headers = [("x", "5"), ("X", "70"), ("x", "5")];
    assert_eq!(met(&policy, &Request::new().headers(&headers)), "t5 t70");
}
