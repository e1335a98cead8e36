//! The shared vectors `path-patterns` and `header-rules`, without the arithmetic.

use super::fixtures::{first, limit_for, limit_if, met, on_header, pattern};
use crate::{Condition, Request};

#[test]
fn path_patterns() {
    let policy = first(
        [
            "/api/v2/merchants/*/users/*/payments/methods$",
            "/api/v1/merchants/*/users/*/payments/methods$",
            "/api/v2/*/*/methods$",
            "/api/v2/desk/space/methods",
            "/$",
            "/files/**/raw$",
            "/static",
        ]
        .iter()
        .enumerate()
        .map(|(i, path)| limit_for(&format!("r{i}"), &[path]))
        .collect(),
    );
    let cases = [
        ("/api/v2/merchants/7/users/9/payments/methods", "r0"),
        ("/api/v1/merchants/7/users/9/payments/methods", "r1"),
        ("/api/v2/desk/space/methods", "r2"),
        ("/api/v2/desk/space/methods/type1", "r3"),
        ("/api/v2/desk/space/methods_type1", ""),
        ("/api/v2/home/space/methods", "r2"),
        ("/api/v2/home/space/methods/type1", ""),
        ("/api/v2/desk//methods", ""),
        ("/api/v2/desk//space/methods", "r2"),
        ("/", "r4"),
        ("/files/a/b/c/raw", "r5"),
        ("/files/raw", "r5"),
        ("/files/raw/x", ""),
        ("/static", "r6"),
        ("/statics", ""),
        ("/static/a.css?v=2", "r6"),
        ("/API/v2/desk/space/methods", ""),
        ("/api/v2/desk/./space/x/../methods", "r2"),
        ("/api/v2/d%65sk/space/methods", "r2"),
        ("/other", ""),
    ];
    for (path, expected) in cases {
        assert_eq!(met(&policy, &Request::new().path(path)), expected, "{path}");
    }
}

#[test]
fn header_rules() {
    let policy = first(vec![
        limit_if(
            "both",
            Condition {
                path: Some(pattern("/pay/*")),
                ..on_header("X-Tier", "Gold")
            },
        ),
        limit_if("header-only", on_header("x-tier", "gold")),
        limit_for("shared", &["/pay", "/refund$"]),
    ]);
    let gold: &[(&str, &str)] = &[("x-TIER", "gOLD")];
    let silver: &[(&str, &str)] = &[("X-Tier", "silver")];
    let two: &[(&str, &str)] = &[("X-Tier", "silver"), ("X-Tier", "GOLD")];
    let empty: &[(&str, &str)] = &[("X-Tier", "")];
    let none: &[(&str, &str)] = &[];
    // For each path, the limits that apply with each set of headers, in the order above.
    let cases = [
        (
            "/pay",
            ["header-only", "shared", "header-only", "shared", "shared"],
        ),
        ("/pay/1", ["both", "shared", "both", "shared", "shared"]),
        ("/pay/2/3", ["both", "shared", "both", "shared", "shared"]),
        (
            "/refund",
            ["header-only", "shared", "header-only", "shared", "shared"],
        ),
        ("/refund/2", ["header-only", "", "header-only", "", ""]),
        ("/else", ["header-only", "", "header-only", "", ""]),
    ];
    for (path, row) in cases {
        for (headers, expected) in [gold, silver, two, empty, none].into_iter().zip(row) {
            let request = Request::new().path(path).headers(headers);
            assert_eq!(met(&policy, &request), expected, "{request:?}");
        }
    }
}
