use super::{
    AnswerReason, Guard, GuardEffect, GuardMembers, GuardOutcome, GuardScratch, GuardVerdict,
    Guards, ListOrigin,
};
use crate::client::{IdentitySource, Trust};
use crate::limit::{AddressRules, KeyPart};
use crate::{Descriptor, DescriptorHits, Request};
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_core::LimitMode;

fn addresses(members: &[&str]) -> GuardMembers {
    GuardMembers::new(
        &KeyPart::Ip,
        AddressRules::default(),
        members.iter().copied(),
    )
}

fn texts(subject: &KeyPart, members: &[&str]) -> GuardMembers {
    GuardMembers::new(subject, AddressRules::default(), members.iter().copied())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn guard(effect: GuardEffect, subject: KeyPart) -> Guard {
    Guard {
        name: "g".to_owned(),
        enabled: true,
        subject,
        effect,
        reason: AnswerReason::Blocked,
        origin: ListOrigin::List(Vec::new().into()),
        refresh: Guard::REFRESH,
        timeout: Guard::TIMEOUT,
        mode: LimitMode::Enforce,
        refusal: None,
    }
}

/// Evaluates guards with these lists.
fn ask(guards: Vec<(Guard, &[&str])>, request: &Request<'_>) -> GuardVerdict {
    let lists = guards.iter();
    let lists: Vec<Arc<GuardMembers>> = lists
        .map(|(guard, members)| Arc::new(texts(&guard.subject, members)))
        .collect();
    let guards = Guards::new(guards.into_iter().map(|(guard, _)| guard).collect());
    let list = |nth: usize| lists.get(nth).map(Arc::as_ref);
    guards.ask(
        request,
        list,
        &mut GuardScratch::default(),
        guards.mark(request),
    )
}

#[test]
fn an_address_is_found_in_any_notation_and_its_neighbours_are_not() {
    let list = addresses(&[
        "192.0.2.7",
        "::ffff:198.51.100.9",
        "10.1.2.3/8",
        " 203.0.113.1 ",
    ]);
    for listed in [
        "192.0.2.7",
        "::ffff:192.0.2.7",
        "198.51.100.9",
        "10.255.0.1",
        "203.0.113.1",
    ] {
        assert!(list.contains_address(ip(listed)), "{listed}");
    }
    for other in ["192.0.2.8", "198.51.100.8", "11.0.0.1", "::", "2001:db8::1"] {
        assert!(!list.contains_address(ip(other)), "{other}");
    }
    assert_eq!((list.len(), list.skipped()), (4, 0));
}

#[test]
fn an_ipv6_address_covers_its_network_unless_written_with_128() {
    let list = addresses(&["2001:db8::1", "2001:db8:1::1/128", "2001:db8:2::/48"]);
    for (address, listed) in [
        ("2001:db8::ffff", true),
        ("2001:db8:0:1::1", false),
        ("2001:db8:1::1", true),
        ("2001:db8:1::2", false),
        ("2001:db8:2:ffff::1", true),
        ("2001:db8:3::1", false),
    ] {
        assert_eq!(list.contains_address(ip(address)), listed, "{address}");
    }
    let narrow = GuardMembers::new(
        &KeyPart::Ip,
        AddressRules { ipv6_prefix: 128 },
        ["2001:db8::1"],
    );
    assert!(!narrow.contains_address(ip("2001:db8::2")));
}

#[test]
fn invalid_addresses_are_skipped_and_counted() {
    let list = addresses(&[
        "",
        "host",
        "1.2.3",
        "1.2.3.4/33",
        "010.0.0.1",
        "fe80::1%eth0",
        "::1",
    ]);
    assert_eq!((list.len(), list.skipped()), (1, 6));
    assert!(!list.contains("::1"), "addresses are no texts");
}

#[test]
fn all_networks_of_ipv4_hold_no_address_of_ipv6() {
    let list = addresses(&["0.0.0.0/0"]);
    assert!(list.contains_address(ip("255.255.255.255")));
    assert!(!list.contains_address(ip("2001:db8::1")));
    let list = addresses(&["::/0"]);
    assert!(list.contains_address(ip("2001:db8::1")));
    assert!(!list.contains_address(ip("192.0.2.1")));
}

#[test]
fn texts_are_compared_exactly_and_stored_once() {
    let list = texts(&KeyPart::ApiKey, &["k1", "K1", "k1", "k12", ""]);
    assert_eq!((list.len(), list.skipped()), (3, 1));
    assert!(list.contains("k1") && list.contains("K1") && list.contains("k12"));
    assert!(!list.contains("k") && !list.contains("1k") && !list.contains(""));
    let long = "x".repeat(1_025);
    let list = texts(&KeyPart::User, &[&long, &long[1..]]);
    assert_eq!((list.len(), list.skipped()), (1, 1));
    assert!(list.contains(&long[1..]) && !list.contains(&long));
}

#[test]
fn all_members_of_a_large_list_are_found() {
    let members: Vec<String> = (0..20_000).map(|n| format!("project-{n}")).collect();
    let list = GuardMembers::new(
        &KeyPart::User,
        AddressRules::default(),
        members.iter().map(String::as_str),
    );
    assert_eq!(list.len(), members.len());
    assert!(members.iter().all(|member| list.contains(member)));
    assert!(!list.contains("project-20000"));
}

#[test]
fn no_member_is_ever_printed() {
    let list = texts(&KeyPart::ApiKey, &["very-secret"]);
    assert_eq!(format!("{list:?}"), "List { members: 1, skipped: 0 }");
    let origin = ListOrigin::List(vec!["very-secret".to_owned()].into());
    assert_eq!(format!("{origin:?}"), "List(1 members)");
}

#[test]
fn hosts_methods_and_paths_are_normalized_before_lookup() {
    for (subject, member, request) in [
        (
            KeyPart::Host,
            "Bad.Example:80",
            Request::new().host("bad.example"),
        ),
        (KeyPart::Method, "trace", Request::new().method("TRACE")),
        (KeyPart::Method, "TRACE", Request::new().method("trace")),
        (KeyPart::Path, "/a//b/", Request::new().path("/a/%62?x=1")),
    ] {
        let members = [member];
        let guards = vec![(guard(GuardEffect::Refuse, subject.clone()), &members[..])];
        assert_eq!(
            ask(guards, &request).outcome,
            GuardOutcome::Refuse(0),
            "{subject:?}"
        );
    }
}

#[test]
fn exemptions_come_first_and_then_the_order_written() {
    let user = || guard(GuardEffect::Refuse, KeyPart::User);
    let exempt = guard(GuardEffect::Exempt, KeyPart::ApiKey);
    let guards = || {
        vec![
            (user(), &["ann", "bob"][..]),
            (user(), &["ann", "eve"][..]),
            (exempt.clone(), &["key"][..]),
        ]
    };
    let said = |request: &Request<'_>| ask(guards(), request).outcome;
    assert_eq!(said(&Request::new().user("ann")), GuardOutcome::Refuse(0));
    assert_eq!(said(&Request::new().user("eve")), GuardOutcome::Refuse(1));
    assert_eq!(
        said(&Request::new().user("eve").api_key("key")),
        GuardOutcome::Exempt(2)
    );
    assert_eq!(said(&Request::new().user("zoe")), GuardOutcome::Pass);
    assert_eq!(said(&Request::new()), GuardOutcome::Pass);
}

#[test]
fn a_shadow_guard_is_reported_and_the_next_one_decides() {
    let watching = Guard {
        mode: LimitMode::Shadow,
        ..guard(GuardEffect::Refuse, KeyPart::User)
    };
    let guards = vec![
        (watching, &["ann"][..]),
        (guard(GuardEffect::Refuse, KeyPart::User), &["ann"][..]),
    ];
    let verdict = ask(guards, &Request::new().user("ann"));
    assert_eq!(verdict.outcome, GuardOutcome::Refuse(1));
    assert!(verdict.is_watched(0) && !verdict.is_watched(1) && !verdict.is_watched(64));
}

#[test]
fn a_disabled_guard_is_not_evaluated_and_others_keep_their_numbers() {
    let off = |effect| Guard {
        enabled: false,
        ..guard(effect, KeyPart::User)
    };
    let watching_off = Guard {
        mode: LimitMode::Shadow,
        ..off(GuardEffect::Refuse)
    };
    let guards = || {
        vec![
            (off(GuardEffect::Exempt), &["ann"][..]),
            (watching_off.clone(), &["ann"][..]),
            (off(GuardEffect::Refuse), &["ann"][..]),
        ]
    };
    let ann = Request::new().user("ann");
    assert_eq!(ask(guards(), &ann), GuardVerdict::default());
    let all_off = guards().into_iter().map(|(guard, _)| guard);
    let all_off = Guards::new(all_off.collect());
    assert!(all_off.is_empty() && all_off.iter().len() == 3);

    let mut guards = guards();
    guards.push((guard(GuardEffect::Refuse, KeyPart::User), &["ann"][..]));
    let verdict = ask(guards, &ann);
    assert_eq!(
        (verdict.outcome, verdict.watched),
        (GuardOutcome::Refuse(3), 0)
    );
}

#[test]
fn subjects_of_a_disabled_guard_do_not_affect_the_others() {
    let attribute = || KeyPart::Attr("project".to_owned());
    let off = Guard {
        enabled: false,
        ..guard(GuardEffect::Refuse, attribute())
    };
    let header = Guard {
        enabled: false,
        ..guard(GuardEffect::Exempt, KeyPart::Header("x-team".to_owned()))
    };
    let attributes = [("project", "p1")];
    let headers = [("x-team", "a")];
    let request = Request::new().attributes(&attributes).headers(&headers);
    let alone = Guards::new(vec![off.clone()]);
    assert!(alone.mark(&request).is_none(), "nobody looks it up");
    let guards = vec![
        (header, &["a"][..]),
        (off, &["p1"][..]),
        (guard(GuardEffect::Refuse, attribute()), &["p1"][..]),
    ];
    assert_eq!(ask(guards, &request).outcome, GuardOutcome::Refuse(2));
}

#[test]
fn duplicate_values_neither_evade_a_guard_nor_exempt_a_client() {
    let twice = [("x-project", "good"), ("X-Project", "bad")];
    let header = || KeyPart::Header("x-project".to_owned());
    let request = Request::new().headers(&twice);
    let refuse = vec![(guard(GuardEffect::Refuse, header()), &["bad"][..])];
    assert_eq!(ask(refuse, &request).outcome, GuardOutcome::Refuse(0));
    let exempt = vec![(guard(GuardEffect::Exempt, header()), &["bad"][..])];
    assert_eq!(ask(exempt, &request).outcome, GuardOutcome::Pass);
}

#[test]
fn one_listed_descriptor_refuses_and_all_of_them_exempt() {
    let of = |entries| Descriptor {
        entries,
        hits: DescriptorHits::AsRequest,
        limit: None,
    };
    let good = of(&[("project", "good")]);
    let bad = of(&[("project", "bad")]);
    let part = || KeyPart::DescriptorEntry {
        name: "project".to_owned(),
        nth: None,
    };
    let said = |effect, descriptors: &[Descriptor<'_>]| {
        let guards = vec![(guard(effect, part()), &["bad"][..])];
        ask(guards, &Request::new().descriptors(descriptors)).outcome
    };
    assert_eq!(
        said(GuardEffect::Refuse, &[good, bad]),
        GuardOutcome::Refuse(0)
    );
    assert_eq!(said(GuardEffect::Refuse, &[good]), GuardOutcome::Pass);
    assert_eq!(said(GuardEffect::Exempt, &[good, bad]), GuardOutcome::Pass);
    assert_eq!(
        said(GuardEffect::Exempt, &[bad, bad]),
        GuardOutcome::Exempt(0)
    );
    assert_eq!(said(GuardEffect::Exempt, &[]), GuardOutcome::Pass);
}

#[test]
fn a_guards_result_does_not_depend_on_other_guards() {
    let refuse = |subject| guard(GuardEffect::Refuse, subject);
    let project = || KeyPart::Attr("project".to_owned());
    let plain = || {
        vec![
            (refuse(KeyPart::Ip), &["192.0.2.0/24"][..]),
            (refuse(project()), &["p1"][..]),
        ]
    };
    // With a guard that reads the host, requests are normalised before any guard is evaluated.
    let beside = || [plain(), vec![(refuse(KeyPart::Host), &["h.example"][..])]].concat();
    let (one, two) = ([("project", "p1")], [("project", "p2"), ("project", "p1")]);
    let other = [("tenant", "p1"), ("project", "")];
    for (address, attributes, expected) in [
        ("::ffff:192.0.2.9", &other[..], GuardOutcome::Refuse(0)),
        ("198.51.100.1", &one[..], GuardOutcome::Refuse(1)),
        ("198.51.100.1", &two[..], GuardOutcome::Refuse(1)),
        ("198.51.100.1", &other[..], GuardOutcome::Pass),
    ] {
        let request = Request::new().ip(ip(address)).attributes(attributes);
        assert_eq!(ask(plain(), &request).outcome, expected, "{attributes:?}");
        assert_eq!(ask(beside(), &request).outcome, expected, "{attributes:?}");
    }
}

#[test]
fn a_later_source_hid_duplicate_values_of_an_earlier_one_from_guards() {
    let sources = || {
        vec![
            IdentitySource::header("x-who", Trust::Anyone),
            IdentitySource::Query("who".to_owned()),
        ]
    };
    let client = crate::Client {
        user: sources(),
        api_key: sources(),
        attributes: vec![
            ("project".to_owned(), sources()),
            ("p".to_owned(), sources()),
        ],
        ..crate::Client::default()
    };
    let project = || KeyPart::Attr("project".to_owned());
    for (said, listed, is_refused) in [
        (&["eve", "eve"][..], "eve", true),
        (&["eve", "ann"], "ann", true),
        (&["eve", ""], "eve", true),
        (&["ann", "joe"], "bob", true),
        (&["ann", "joe"], "eve", false),
        // The single value of the header is effective; the query of the later source is not read.
        (&["ann"], "bob", false),
    ] {
        let headers: Vec<(&str, &str)> = said.iter().map(|it| ("x-who", *it)).collect();
        let identity = client.identify(&crate::client::RequestFacts {
            peer: Some(ip("127.0.0.1")),
            headers: &headers[..],
            path: Some("/?who=bob"),
            now: &|| 0,
        });
        let attributes: Vec<(&str, &str)> = identity
            .attributes
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        let counts = if said.len() == 1 { said[0] } else { "bob" };
        let of_project = attributes.iter().filter(|(name, _)| *name == "project");
        assert!(of_project.map(|(_, it)| *it).eq([counts]), "for limits");
        assert_eq!(identity.user.as_deref(), Some(counts));
        let mut request = Request::new().attributes(&attributes).user(counts);
        request = request.api_key(counts);
        let members = [listed];
        let outcome = |guards: Vec<Guard>| {
            let guards = guards.into_iter().map(|it| (it, &members[..]));
            ask(guards.collect(), &request).outcome
        };
        let refuse = |subject| guard(GuardEffect::Refuse, subject);
        let host = || refuse(KeyPart::Host);
        let expected = if is_refused {
            GuardOutcome::Refuse(0)
        } else {
            GuardOutcome::Pass
        };
        assert_eq!(outcome(vec![refuse(project())]), expected, "{said:?}");
        for subject in [project(), KeyPart::User, KeyPart::ApiKey] {
            let guards = vec![refuse(subject.clone()), host()];
            assert_eq!(outcome(guards), expected, "{said:?} {subject:?}");
        }
        // One of several values exempts no client.
        let exempt = outcome(vec![guard(GuardEffect::Exempt, project())]);
        let is_exempt = exempt == GuardOutcome::Exempt(0);
        assert_eq!(is_exempt, listed == counts, "{said:?}");
    }
}
