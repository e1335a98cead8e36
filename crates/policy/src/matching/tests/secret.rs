use crate::Request;
use crate::matching::KeyRules;
use crate::matching::is_secret_name;

#[test]
fn names_that_carry_secrets_are_known() {
    for name in [
        "Authorization",
        "proxy-authorization",
        "X-Api-Key",
        "apikey",
        "Cookie",
        "x-auth-token",
        "sessionid",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in ["x-tenant", "user-agent", "accept", "project", ""] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn debug_shows_no_secret() {
    let headers = [("Authorization", "Bearer hush"), ("x-tier", "gold")];
    let attributes = [("token", "hush")];
    let request = Request::new()
        .api_key("hush")
        .headers(&headers)
        .attributes(&attributes);
    let shown = format!("{request:?}");
    assert!(!shown.contains("hush"), "{shown}");
    assert!(shown.contains("gold") && shown.contains("***"), "{shown}");

    let rules = KeyRules {
        secret: Some([171; 32]),
        ..KeyRules::default()
    };
    assert!(!format!("{rules:?}").contains("171"));
}
