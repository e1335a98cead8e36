//! nginx's own subrequests, and the size of its check requests.

use crate::kit::{FailureMode, Setup, Site};
use std::fs;

/// Opens a site whose nginx `location / {` also starts with these lines.
fn with(lines: &str) -> Option<Site> {
    Site::open_with(Setup::Nginx, FailureMode::Open, |folder| {
        let begin = "location / {";
        folder.change("nginx.conf", begin, &format!("{begin}\n{lines}\n"));
        fs::create_dir(folder.path().join("files")).unwrap();
    })
}

#[test]
fn a_client_denied_by_nginx_gets_403_and_not_503() {
    let Some(mut site) = with("deny 127.0.0.7;") else {
        return;
    };
    site.use_up(2);
    let forbidden = |site: &Site| {
        let reply = site.get(7, "/", &[]);
        assert_eq!(reply.status, 403, "{reply:?}");
        assert_eq!(reply.header("retry-after"), None);
        assert_eq!(reply.header("content-type"), Some("text/html"));
    };
    forbidden(&site);
    site.tidegate.go();
    forbidden(&site);
    assert_eq!(site.application.asked(), [""; 0]);
    assert_eq!(site.get(2, "/", &[]).status, 200, "`on_failure` applies");
}

#[test]
fn errors_of_nginx_keep_their_status() {
    let lines = "location /files/ { root .; }
        location = /nowhere { set $nowhere nonsense; proxy_pass $nowhere; }
        location = /broken { return 500; }";
    let Some(site) = with(lines) else {
        return;
    };
    for (path, status) in [("/files/", 403), ("/nowhere", 500), ("/broken", 500)] {
        let reply = site.get(2, path, &[]);
        assert_eq!(reply.status, status, "{path}: {reply:?}");
        assert_eq!(reply.header("retry-after"), None, "{path}");
    }
    // Two of them were checked, and count.
    assert_eq!(site.get(2, "/", &[]).status, 200);
    assert_eq!(site.get(2, "/files/", &[]).status, 429);
    assert_eq!(site.get(2, "/nowhere", &[]).status, 429);
}

#[test]
fn malformed_requests_get_400_and_not_503() {
    let Some(site) = Site::open(Setup::Nginx, FailureMode::Open) else {
        return;
    };
    for head in [
        &b"GET /\xff HTTP/1.1\r\nhost: shop.example\r\n\r\n"[..],
        b"GET /#part HTTP/1.1\r\nhost: shop.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a,b\r\n\r\n",
    ] {
        let reply = site.try_send(2, head).unwrap();
        assert_eq!(reply.status, 400, "{}: {reply:?}", head.escape_ascii());
        assert_eq!(reply.header("retry-after"), None);
        let kind = reply.header("content-type");
        assert_eq!(kind, Some("application/problem+json"));
        assert_eq!(reply.json()["status"], 400);
    }
    assert_eq!(site.application.asked(), [""; 0]);
}

#[test]
fn the_total_size_of_a_forwarded_request_is_bounded() {
    let Some(site) = Site::open(Setup::Nginx, FailureMode::Open) else {
        return;
    };
    let much = |bytes: usize| "a".repeat(bytes);
    let fits = format!("x-api-key: {}", much(5_900));
    let reply = site.get(2, &format!("/{}", much(5_900)), &[&fits]);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("x-ratelimit-remaining"), Some("2"));
    site.application.asked();

    let (whole, part) = (much(12_000), much(6_000));
    let path = |text: &str| format!("/{text}");
    for (path, lines) in [
        (path(&whole), vec![]),
        (path(""), vec![format!("x-api-key: {whole}")]),
        (path(""), vec![format!("x-correlation-id: {whole}")]),
        (path(&part), vec![format!("x-api-key: {part}")]),
        (path(&part), vec![format!("x-correlation-id: {part}")]),
        (
            path(""),
            vec![
                format!("x-api-key: {part}"),
                format!("x-correlation-id: {part}"),
            ],
        ),
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(site.get(3, &path, &lines).status, 431);
    }
    let host = format!("GET / HTTP/1.1\r\nhost: {whole}\r\n\r\n");
    assert_eq!(site.try_send(3, &host).unwrap().status, 431);
    let method = format!("{} / HTTP/1.1\r\nhost: a\r\n\r\n", "A".repeat(12_000));
    assert_eq!(site.try_send(3, &method).unwrap().status, 431);
    assert_eq!(site.application.asked(), [""; 0]);
}
