//! Servers of nginx on several addresses, and other cases that must not loosen their limits.

use super::{file, meant};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;
use std::fmt::Write;
use tidegate_config::Config;
use tidegate_import::nginx;
use tidegate_policy::Request;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::policy::Scratch;

const ZONES: &str = "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/s;
limit_req_zone $binary_remote_addr zone=two:1m rate=2r/s;
";

/// Returns the translation of servers, and its notes.
fn translated(servers: &str) -> (Config, String) {
    let found = nginx(&file(&format!("{ZONES}{servers}")), &mut |_| Ok(Vec::new()));
    let found = found.unwrap_or_else(|errors| panic!("{errors}"));
    let mut notes = String::new();
    for note in found.notes() {
        writeln!(notes, "{note}").unwrap();
    }
    (meant(&found.to_yaml()), notes)
}

/// Returns the zones that limit a request, in order.
fn zones(config: &Config, host: &str, path: &str) -> Vec<String> {
    let mut request = Request::new();
    (request.host, request.path) = (Some(host), Some(path));
    let mut scratch = Scratch::default();
    let policy = config.policies.first().unwrap();
    let meeting = policy.meet(&request, &KeyRules::default(), &mut scratch);
    let limits = meeting.met.iter();
    let limits = limits.filter_map(|met| policy.limits.get(met.limit));
    let limits = limits.filter(|limit| !limit.bands.is_empty());
    let zone = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let mut zones: Vec<String> = limits.map(|limit| zone(&limit.name)).collect();
    zones.sort();
    zones
}

#[test]
fn a_server_on_another_port_does_not_remove_the_limits_of_the_default_server() {
    let (config, notes) = translated(
        "server { listen 443 ssl default_server; server_name example.com; limit_req zone=one; }
         server { listen 80; server_name example.com;
             location /.well-known/acme-challenge/ { } location / { return 301 https://x; } }",
    );
    assert_eq!(zones(&config, "example.com", "/"), ["one"]);
    assert_eq!(
        zones(&config, "example.com", "/.well-known/acme-challenge/x"),
        ["one"]
    );
    assert!(notes.contains("edge.yaml:5: warning"), "{notes}");
}

#[test]
fn a_named_redirect_that_is_the_default_of_its_port_does_not_remove_all_limits() {
    let (config, _) = translated(
        "server { listen 80 default_server; server_name www.x; return 301 https://x; }
         server { listen 443 default_server; server_name _; limit_req zone=one; }",
    );
    assert_eq!(zones(&config, "www.x", "/"), ["one"]);
    assert_eq!(zones(&config, "x", "/"), ["one"]);
}

#[test]
fn a_status_page_on_another_address_does_not_remove_the_limits_of_its_host() {
    for listen in [
        "127.0.0.1:8081",
        "unix:/run/status.sock",
        "[::1]:80",
        "8081",
    ] {
        let (config, notes) = translated(&format!(
            "server {{ listen 80; server_name a.example; limit_req zone=one; }}
             server {{ listen {listen}; server_name localhost; location / {{ stub_status; }} }}"
        ));
        assert_eq!(zones(&config, "localhost", "/"), ["one"], "{listen}");
        assert!(notes.contains("edge.yaml:4: warning"), "{notes}");
    }
}

#[test]
fn a_server_on_one_of_two_ports_does_not_replace_the_limits_of_the_other_port() {
    let (config, notes) = translated(
        "server { listen 80 default_server; listen 443 default_server; limit_req zone=one; }
         server { listen 443; server_name a.example; limit_req zone=two; }",
    );
    assert_eq!(zones(&config, "a.example", "/"), ["one", "two"]);
    assert!(notes.contains("the limits of both apply"), "{notes}");
    // A third server has the name on the other port.
    let (config, notes) = translated(
        "server { listen 80 default_server; listen 443 default_server; limit_req zone=one; }
         server { listen 443; server_name a.example; limit_req zone=two; }
         server { listen 80; server_name a.example; return 301 https://a.example; }",
    );
    assert_eq!(zones(&config, "a.example", "/"), ["two"]);
    assert_eq!(zones(&config, "b.example", "/"), ["one"]);
    assert!(!notes.contains("the limits of both apply"), "{notes}");
}

#[test]
fn a_default_server_of_one_port_does_not_replace_another_one_for_its_names() {
    let (config, _) = translated(
        "server { listen 443; listen 80; server_name a.example; limit_req zone=one; }
         server { listen 80 default_server; server_name d.example; limit_req zone=two; }",
    );
    assert!(zones(&config, "d.example", "/").contains(&"two".to_owned()));
    assert!(zones(&config, "a.example", "/").contains(&"one".to_owned()));
}

#[test]
fn a_limit_that_two_ports_share_is_removed_only_where_its_server_is() {
    let (config, _) = translated(
        "limit_req zone=one;
         server { listen 80 default_server; }
         server { listen 443 default_server; }
         server { listen 80; server_name a.example; return 301 https://a.example; }",
    );
    assert_eq!(zones(&config, "a.example", "/"), ["one"]);
    assert!(zones(&config, "b.example", "/").contains(&"one".to_owned()));
}

#[test]
fn a_wildcard_does_not_replace_an_exact_name_of_the_default_server() {
    let (config, _) = translated(
        "server { listen 80 default_server; server_name x.b.example; limit_req zone=one; }
         server { listen 80; server_name *.b.example; limit_req zone=two; }",
    );
    assert!(zones(&config, "x.b.example", "/").contains(&"one".to_owned()));
    assert!(zones(&config, "y.b.example", "/").contains(&"two".to_owned()));
}

#[test]
fn a_regular_expression_inside_a_location_does_not_apply_to_the_whole_server() {
    let (config, notes) = translated(
        "limit_req zone=one;
         server {
             location /internal/ {
                 location ~ /health$ { limit_req zone=two; }
             }
         }",
    );
    assert_eq!(zones(&config, "a", "/public/health"), ["one"]);
    assert_eq!(zones(&config, "a", "/internal/health"), ["one"]);
    assert!(notes.contains("edge.yaml:6: warning"), "{notes}");
}

#[test]
fn limits_of_a_regular_expression_inside_a_final_location_are_warned_about() {
    let (config, notes) = translated(
        "server {
             location ^~ /api/ {
                 limit_req zone=one;
                 location ~ /slow$ { limit_req zone=two; location /x { return 200; } }
             }
         }",
    );
    assert_eq!(zones(&config, "a", "/api/slow"), ["one"]);
    assert_eq!(zones(&config, "a", "/slow"), [""; 0]);
    assert!(notes.contains("edge.yaml:6: warning"), "{notes}");
    // A server with the limits of the location around it changes nothing.
    let (_, notes) =
        translated("server { limit_req zone=one; location ^~ /api/ { location ~ /slow$ { } } }");
    assert!(!notes.contains("warning"), "{notes}");
}

#[test]
fn the_outer_location_decides_whether_regular_expressions_come_first() {
    let (config, _) = translated(
        "server {
             location ^~ /a/ { location /a/b/ { limit_req zone=one; } }
             location /c/ { location ^~ /c/d/ { limit_req zone=one; } }
             location ~ /x$ { limit_req zone=two; }
         }",
    );
    assert_eq!(zones(&config, "a", "/a/b/x"), ["one"]);
    assert_eq!(zones(&config, "a", "/c/d/x"), ["two"]);
    assert_eq!(zones(&config, "a", "/c/d/y"), ["one"]);
}

#[test]
fn a_key_of_several_headers_is_skipped_only_if_all_are_absent() {
    let (config, notes) = translated(
        "limit_req_zone $http_x_a$http_x_b zone=both:1m rate=1r/s;
         limit_req_zone $http_x_a zone=single:1m rate=1r/s;
         limit_req zone=both; limit_req zone=single;",
    );
    assert_eq!(zones(&config, "a", "/"), ["both"]);
    assert!(
        notes.contains("warning: requests without a part of the key of zone `both`"),
        "{notes}"
    );
    assert!(notes.contains("if a client sends it twice"));
}

#[test]
fn paths_that_nginx_changes_are_warned_about_in_all_locations() {
    for change in [
        "location / { try_files $uri /index.php?$args; }",
        "location / { if ($x) { rewrite ^ /index.php last; } }",
        "rewrite ^/api /index.php;",
    ] {
        let (_, notes) = translated(&format!(
            "server {{ location = /index.php {{ limit_req zone=one; }}\n{change} }}"
        ));
        assert!(notes.contains("edge.yaml:4: warning"), "{change}: {notes}");
        assert!(notes.contains("changes the path"), "{change}: {notes}");
    }
    for other in [
        "location / { try_files $uri =404; }",
        "rewrite ^ https://a.example permanent;",
    ] {
        let (_, notes) = translated(&format!(
            "server {{ location = /index.php {{ limit_req zone=one; }}\n{other} }}"
        ));
        assert!(!notes.contains("changes the path"), "{other}: {notes}");
    }
}

#[test]
fn trusted_proxies_without_a_header_send_x_real_ip() {
    let found = nginx(
        &file(&format!(
            "{ZONES}set_real_ip_from 10.0.0.0/8; limit_req zone=one;"
        )),
        &mut |_| Ok(Vec::new()),
    );
    let yaml = found.unwrap_or_else(|errors| panic!("{errors}")).to_yaml();
    assert!(yaml.contains("\n  address: x-real-ip\n"), "{yaml}");
}

#[test]
fn settings_of_geo_that_change_its_networks_are_refused() {
    for setting in ["proxy 10.0.0.1", "proxy_recursive", "delete 10.1.0.0/16"] {
        let text = format!(
            "geo $in {{ default 1; 10.0.0.0/8 0; {setting}; }}
             map $in $counted {{ 0 ''; 1 $binary_remote_addr; }}
             limit_req_zone $counted zone=geo:1m rate=1r/s;
             limit_req zone=geo;"
        );
        let found = nginx(&file(&text), &mut |_| Ok(Vec::new()));
        let errors = found.map(|it| it.to_yaml()).unwrap_err().to_string();
        assert!(
            errors.contains(&format!("`{setting}` in `geo`")),
            "{errors}"
        );
    }
}

#[test]
fn thousands_of_locations_are_refused() {
    let mut servers = "server { limit_req zone=one;\n".to_owned();
    for number in 0..5_000 {
        writeln!(servers, "location /{number}/ {{ limit_req zone=two; }}").unwrap();
    }
    let found = nginx(&file(&format!("{ZONES}{servers}}}")), &mut |_| {
        Ok(Vec::new())
    });
    let errors = found.map(|it| it.to_yaml()).unwrap_err().to_string();
    assert!(errors.contains("are too many"), "{errors}");
}

#[test]
fn the_first_regular_expression_of_a_line_is_the_first_one() {
    let (config, _) = translated(
        "server { location ~ /x$ { limit_req zone=one; } location ~ ^/a/ { limit_req zone=two; } }",
    );
    assert_eq!(zones(&config, "a", "/a/x"), ["one"]);
    assert_eq!(zones(&config, "a", "/a/y"), ["two"]);
}

const LISTENS: [&str; 3] = ["80", "443", "127.0.0.1:80"];
const NAMES: [&str; 5] = [
    "a.example",
    "b.a.example",
    "*.example",
    "*.a.example",
    ".b.example",
];
const HOSTS: [&str; 6] = [
    "a.example",
    "b.a.example",
    "c.a.example",
    "b.example",
    "c.b.example",
    "unknown",
];
const INSIDE: [&str; 4] = [
    "",
    "limit_req zone=one;",
    "limit_req zone=two;",
    "return 204;",
];

/// A server: its addresses and names, and the contents of itself and of a location.
type RandomServer = (
    BTreeSet<&'static str>,
    BTreeSet<&'static str>,
    &'static str,
    &'static str,
);

/// Returns the server that nginx chooses.
fn chosen<'s>(
    servers: &'s [RandomServer],
    is_default: &dyn Fn(usize, &str) -> bool,
    (listen, host): (&str, &str),
) -> Option<&'s RandomServer> {
    let here = || servers.iter().filter(|it| it.0.contains(listen));
    let mut numbered = servers.iter().enumerate();
    let declared = numbered.find(|(at, it)| it.0.contains(listen) && is_default(*at, listen));
    let default = declared.map(|it| it.1).or_else(|| here().next());
    let exact = here().find(|it| {
        let mut names = it.1.iter();
        names.any(|name| *name == host || name.strip_prefix('.') == Some(host))
    });
    let ending = |name: &str| name.trim_start_matches('*').to_owned();
    let mut endings: Vec<(usize, &RandomServer)> = Vec::new();
    for it in here() {
        let names = it.1.iter().filter(|name| name.starts_with(['*', '.']));
        let names = names.map(|name| ending(name));
        endings.extend(
            names
                .filter(|name| host.ends_with(name))
                .map(|name| (name.len(), it)),
        );
    }
    let longest = endings.iter().map(|it| it.0).max();
    let wildcard = endings
        .iter()
        .find(|it| Some(it.0) == longest)
        .map(|it| it.1);
    exact.or(wildcard).or(default)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_limit_of_the_server_that_nginx_chooses_is_missing(
        outer in select(&INSIDE[..3]),
        servers in vec((
            btree_set(select(&LISTENS[..]), 1..3),
            btree_set(select(&NAMES[..]), 0..3),
            select(&INSIDE[..]),
            select(&INSIDE[..]),
        ), 1..5),
        defaults in vec(0_usize..8, LISTENS.len()),
    ) {
        let mut text = format!("{ZONES}{outer}\n");
        let is_default = |at: usize, listen: &str| {
            let mut declared = LISTENS.iter().zip(&defaults);
            declared.any(|(it, default)| *it == listen && *default == at)
        };
        for (at, (listens, names, inside, location)) in servers.iter().enumerate() {
            text.push_str("server {");
            for it in listens {
                let default = if is_default(at, it) { " default_server" } else { "" };
                write!(text, " listen {it}{default};").unwrap();
            }
            for it in names {
                write!(text, " server_name {it};").unwrap();
            }
            writeln!(text, " {inside} location /p/ {{ {location} }} }}").unwrap();
        }
        let found = nginx(&file(&text), &mut |_| Ok(Vec::new()));
        let yaml = found.unwrap_or_else(|errors| panic!("{text}{errors}")).to_yaml();
        let config = meant(&yaml);
        for (listen, host) in LISTENS.iter().flat_map(|it| HOSTS.map(|host| (it, host))) {
            let Some(server) = chosen(&servers, &is_default, (listen, host)) else {
                continue;
            };
            for (path, levels) in [("/x", &[outer, server.2][..]), ("/p/x", &[outer, server.2, server.3])] {
                let returns = server.2.starts_with("return") || (path == "/p/x" && server.3.starts_with("return"));
                let last = levels.iter().rev().find(|it| it.starts_with("limit_req"));
                let zone = last.and_then(|it| it.split(['=', ';']).nth(1));
                if let Some(zone) = zone.filter(|_| !returns) {
                    let zones = zones(&config, host, path);
                    prop_assert!(zones.contains(&zone.to_owned()), "{listen} {host}{path} {zone} {zones:?}\n{text}{yaml}");
                }
            }
        }
    }
}
