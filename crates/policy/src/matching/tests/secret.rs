use super::fixtures::{all, limit};
use crate::matching::KeyRules;
use crate::matching::is_secret_name;
use crate::template::{Template, TemplatePiece};
use crate::{KeyPart, Limit, Request, Scratch};

#[test]
fn header_names_with_secrets_are_recognized() {
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

/// Returns the bucket of a limit by API key, and the subject as shown.
fn named(template: Option<&str>, api_key: &str) -> (String, String) {
    let policy = all(vec![Limit {
        key: vec![KeyPart::ApiKey],
        template: template.map(|it| Template::new(it.to_owned(), vec![TemplatePiece::Key])),
        ..limit("l")
    }]);
    let rules = KeyRules {
        literal: true,
        ..KeyRules::default()
    };
    let mut scratch = Scratch::default();
    let meeting = policy.meet(&Request::new().api_key(api_key), &rules, &mut scratch);
    let met = &meeting.met[0];
    let bucket = String::from_utf8(meeting.bucket(met).to_vec()).unwrap();
    (bucket, meeting.subject(met).to_owned())
}

#[test]
fn api_keys_are_literal_only_in_names_shared_with_another_system() {
    let template = Some("fluxgate:{policy}:{limit}:{key}:{band}");
    let (bucket, subject) = named(template, "k-123");
    assert_eq!(bucket, "p/l/api-key:k-123");
    assert!(subject.starts_with("api-key:#"), "{subject}");
    // Nothing in it can end the name or a part of it.
    assert_eq!(named(template, "a:b,c/d").0, "p/l/api-key:a%3Ab%2Cc%2Fd");
    // Longer values are hashed, because they would fill the store with long names.
    let longest = "k".repeat(256);
    assert_eq!(
        named(template, &longest).0,
        format!("p/l/api-key:{longest}")
    );
    let (bucket, subject) = named(template, &"k".repeat(257));
    assert_eq!(bucket, format!("p/l/{subject}"));
    // Keys without a template have hashes.
    let (bucket, subject) = named(None, "k-123");
    assert_eq!(bucket, format!("p/l/{subject}"));
    assert!(!bucket.contains("k-123"));
}
