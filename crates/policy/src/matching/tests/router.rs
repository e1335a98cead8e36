use super::trie::{any_pattern, matches};
use crate::Condition;
use crate::matching::{HostPattern, Router, RouterScratch, normalise};
use proptest::prelude::*;

/// The reference for routes: checks each condition of each in turn, slow and obvious.
fn first(
    routes: &[Vec<Condition>],
    method: &str,
    host: Option<&str>,
    path: &str,
) -> Option<(usize, usize)> {
    let mut buffer = String::new();
    let path = normalise(path, &mut buffer);
    let holds = |condition: &Condition| {
        let path_holds = condition.path.as_ref().is_none_or(|it| matches(it, path));
        let host_holds = condition.hosts.is_empty()
            || host.is_some_and(|host| condition.hosts.iter().any(|it| it.matches(host)));
        let methods = &condition.methods;
        path_holds && host_holds && (methods.is_empty() || methods.iter().any(|it| it == method))
    };
    routes.iter().enumerate().find_map(|(route, conditions)| {
        if conditions.is_empty() {
            return Some((route, 0));
        }
        Some((route, conditions.iter().position(holds)?))
    })
}

fn any_condition() -> impl Strategy<Value = Condition> {
    let hosts = ["a.org", "b.a.org", "*.a.org", "*.b.a.org", "*.org", "org"];
    let host = prop::sample::select(hosts.to_vec());
    let host = host.prop_map(|text| HostPattern::parse(text).unwrap());
    let method = prop::sample::select(vec!["GET".to_owned(), "PUT".to_owned()]);
    let parts = (
        prop::option::weighted(0.7, any_pattern()),
        prop::collection::vec(method, 0..2),
        prop::collection::vec(host, 0..3),
    );
    parts.prop_map(|(path, methods, hosts)| Condition {
        path,
        methods,
        hosts,
        ..Condition::default()
    })
}

fn find(router: &Router, method: &str, host: Option<&str>, path: &str) -> Option<(usize, usize)> {
    router.find(method, host, path, &mut RouterScratch::default())
}

fn router(routes: &[Vec<Condition>]) -> Router {
    Router::new(routes.iter().map(|it| Some(it.as_slice())))
}

proptest! {
    #[test]
    fn the_first_matching_route_wins(
        routes in prop::collection::vec(prop::collection::vec(any_condition(), 0..4), 0..8),
        method in prop::sample::select(vec!["GET", "PUT", "POST"]),
        host in prop::sample::select(vec![
            None, Some("a.org"), Some("b.a.org"), Some("c.b.a.org"), Some("org"), Some("x.net"),
        ]),
        path in "(/[abc]|/%61){0,5}/?",
    ) {
        let expected = first(&routes, method, host, &path);
        prop_assert_eq!(find(&router(&routes), method, host, &path), expected);
    }
}

fn at(host: &str) -> Vec<Condition> {
    vec![Condition::default().with_host(host).unwrap()]
}

#[test]
fn hosts_are_compared_in_normalized_form() {
    let router = router(&[at("A.org"), at("*.A.org")]);
    for (host, route) in [
        ("a.org", Some(0)),
        ("A.ORG:8000", Some(0)),
        ("a.org.", Some(0)),
        ("x.a.org", Some(1)),
        ("Y.x.A.org:80", Some(1)),
        (".a.org", None),
        ("xa.org", None),
        ("org", None),
        ("", None),
    ] {
        let found = find(&router, "GET", Some(host), "/");
        assert_eq!(found.map(|(route, _)| route), route, "{host}");
    }
    assert_eq!(find(&router, "GET", None, "/"), None);
}

#[test]
fn no_path_notation_bypasses_a_route() {
    let private = vec![Condition::default().with_path("/admin").unwrap()];
    let router = router(&[private, Vec::new()]);
    for path in [
        "/admin",
        "//admin",
        "/x/../admin/y",
        "/%61dmin?q",
        "http://h/admin",
    ] {
        assert_eq!(find(&router, "GET", None, path), Some((0, 0)), "{path}");
    }
    for path in ["/administrator", "/", "*", "", "/x?/admin"] {
        assert_eq!(find(&router, "GET", None, path), Some((1, 0)), "{path}");
    }
}

#[test]
fn a_host_of_many_labels_is_not_searched_beyond_the_longest_domain() {
    let router = router(&[at("*.a.org")]);
    let long = "x.".repeat(20_000) + "a.org";
    assert_eq!(find(&router, "GET", Some(&long), "/"), Some((0, 0)));
    assert_eq!(router.domains_of(&long).count(), 2);
    let elsewhere = "x.".repeat(20_000) + "net";
    assert_eq!(find(&router, "GET", Some(&elsewhere), "/"), None);
}
