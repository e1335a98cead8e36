//! Random configurations of nginx and Traefik: a translation is valid, or the error is about the file itself.

use crate::file;
use proptest::prelude::*;
use tidegate_config::ConfigErrors;
use tidegate_import::{ImportedConfig, nginx, traefik_ratelimit};

/// Fails if a translation is invalid: an error with a position in it should have been found before.
fn is_found_before(text: &str, found: Result<ImportedConfig, ConfigErrors>) {
    if let Err(errors) = found {
        let errors = errors.to_string();
        assert!(!errors.contains(", translated"), "{text}\n{errors}");
    }
}

fn words(of: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(of)
}

/// Generates a location with or without a limit.
fn location() -> impl Strategy<Value = String> {
    let path = words(&[
        "/",
        "/a",
        "/a/",
        "= /a",
        "^~ /a/b",
        "/a/b/c",
        "~ ^/a/[^/]+$",
        "~ /x$",
        "~* ^/(a|b)",
        "~ [",
        "@x",
        "= /",
    ]);
    (path, prop::option::of(limit())).prop_map(|(path, limit)| {
        let limit = limit.unwrap_or_default();
        format!("location {path} {{ {limit} }}\n")
    })
}

fn limit() -> impl Strategy<Value = String> {
    let zone = words(&["one", "two", "key", "geo"]);
    let burst = words(&["", " burst=0", " burst=5", " burst=1000000"]);
    let delay = words(&["", " nodelay", " delay=0", " delay=3", " delay=9000000"]);
    (zone, burst, delay)
        .prop_map(|(zone, burst, delay)| format!("limit_req zone={zone}{burst}{delay};"))
}

fn server() -> impl Strategy<Value = String> {
    let names = words(&[
        "",
        "server_name a.example;",
        "server_name .b.example c.*;",
        "server_name ~^x; return 301 /;",
    ]);
    let limits = prop::collection::vec(limit(), 0..3);
    let locations = prop::collection::vec(location(), 0..6);
    (names, limits, locations).prop_map(|(names, limits, locations)| {
        format!(
            "server {{ {names} {}\n{} }}\n",
            limits.join(" "),
            locations.concat()
        )
    })
}

/// Generates a router of Traefik.
fn router() -> impl Strategy<Value = String> {
    let rule = words(&[
        "Host(`a.example`)",
        "PathPrefix(`/`)",
        "PathPrefix(`/a`) || Path(`/b`)",
        "Host(`a.example`, `b.example`) && Method(`GET`)",
        "ClientIP(`10.0.0.0/8`) && Header(`X-A`, `b`)",
        "!Path(`/a`)",
        "Path(`/a//**`)",
    ]);
    let priority = words(&["", "priority: 1, ", "priority: 1000, "]);
    let middlewares = words(&["[]", "[a]", "[a, b]", "[c]"]);
    (rule, priority, middlewares).prop_map(|(rule, priority, middlewares)| {
        format!("rule: \"{rule}\", {priority}middlewares: {middlewares}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_translation_of_nginx_is_valid(
        servers in prop::collection::vec(server(), 0..4),
        rate in words(&["1r/s", "7r/m", "100000r/s"]),
    ) {
        let text = format!(
            "geo $in {{ default 1; 10.0.0.0/8 0; }}\nmap $in $geo {{ 0 ''; 1 $host; }}\n\
             limit_req_zone $binary_remote_addr zone=one:1m rate={rate};\n\
             limit_req_zone $host$uri zone=two:1m rate={rate};\n\
             limit_req_zone $http_x_key zone=key:1m rate={rate};\n\
             limit_req_zone $geo zone=geo:1m rate={rate};\n{}",
            servers.concat()
        );
        is_found_before(&text, nginx(&file(&text), &mut |_| Ok(Vec::new())));
    }

    #[test]
    fn a_translation_of_traefik_is_valid(
        routers in prop::collection::vec(router(), 0..6),
        average in words(&["0", "1", "7", "100000"]),
        period in words(&["1s", "7ms", "1h"]),
        burst in words(&["0", "1", "1000000"]),
    ) {
        let routers = routers.iter().enumerate();
        let routers = routers.map(|(number, router)| format!("    r{number}: {{ {router} }}\n"));
        let limits = ["a", "b"].map(|name| format!(
            "    {name}: {{ rateLimit: {{ average: {average}, period: {period}, burst: {burst} }} }}\n"
        ));
        let text = format!(
            "http:\n  routers:\n{}  middlewares:\n{}    c: {{ chain: {{ middlewares: [a, c] }} }}\n",
            routers.collect::<String>(),
            limits.concat()
        );
        is_found_before(&text, traefik_ratelimit(&file(&text)));
    }

    #[test]
    fn any_text_is_parsed_or_rejected(text in "[ -~\n${}#;\"'\\\\]{0,200}") {
        is_found_before(&text, nginx(&file(&text), &mut |_| Ok(Vec::new())));
        is_found_before(&text, traefik_ratelimit(&file(&text)));
    }
}
