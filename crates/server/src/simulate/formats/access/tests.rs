//! One real line of each program.

use super::*;

const TRAEFIK: &str = r#"{"ClientAddr":"10.42.0.7:51532","ClientHost":"203.0.113.9","ClientPort":"51532","ClientUsername":"ann","DownstreamContentSize":19,"DownstreamStatus":404,"Duration":61312,"RequestAddr":"api.example.com","RequestContentSize":0,"RequestCount":5,"RequestHost":"api.example.com","RequestMethod":"GET","RequestPath":"/v2/items?page=2","RequestPort":"-","RequestProtocol":"HTTP/2.0","RequestScheme":"https","RetryAttempts":0,"RouterName":"api@docker","StartLocal":"2023-11-14T23:13:20.123456789+01:00","StartUTC":"2023-11-14T22:13:20.123456789Z","entryPointName":"websecure","level":"info","msg":"","request_User-Agent":"curl/8.4.0","request_Authorization":"REDACTED","time":"2023-11-14T22:13:21Z"}"#;

const ENVOY: &str = r#"{"authority":"api.example.com","bytes_received":0,"downstream_local_address":"10.0.0.5:8443","downstream_remote_address":"[2001:db8::9]:40622","duration":3,"method":"POST","path":"/pay","protocol":"HTTP/1.1","request_id":"a1","response_code":200,"response_flags":"-","route_name":"pay","start_time":"2023-11-14T22:13:20.500Z","upstream_host":"10.0.0.9:80","user_agent":"okhttp/4","x_forwarded_for":"198.51.100.4, 10.1.1.1"}"#;

const CADDY: &str = r#"{"level":"info","ts":1700000000.1234567,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"10.0.0.1","remote_port":"41342","client_ip":"203.0.113.7","proto":"HTTP/2.0","method":"GET","host":"example.com","uri":"/a?b","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"],"Cookie":["REDACTED"],"X-Tier":["gold","silver"]},"tls":{"resumed":false,"version":772}},"bytes_read":0,"user_id":"bob","duration":0.0009,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}"#;

const NGINX: &str = r#"{"time_iso8601":"2023-11-14T22:13:20+00:00","msec":"1700000000.250","remote_addr":"192.0.2.1","request":"GET /x HTTP/1.1","request_time":"0.003","host":"example.com","remote_user":""}"#;

fn run(line: &str) -> String {
    let mut event = Event::default();
    read(line.as_bytes(), &mut event).expect("a valid line");
    let q = &event.question;
    let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or("·").to_owned();
    format!(
        "{} {} {} {} {} {} {} {:?} {}",
        event.at.as_micros(),
        q.ip.expect("an address"),
        text(&q.user),
        text(&q.method),
        text(&q.host),
        text(&q.path),
        text(&q.route),
        q.headers,
        text(&event.forwarded),
    )
}

#[test]
fn log_lines_of_every_program_are_parsed() {
    for (line, expected) in [
        (
            TRAEFIK,
            r#"1700000000123456 203.0.113.9 ann GET api.example.com /v2/items?page=2 api@docker [("User-Agent", "curl/8.4.0")] ·"#,
        ),
        (
            ENVOY,
            r#"1700000000500000 2001:db8::9 · POST api.example.com /pay pay [("User-Agent", "okhttp/4")] 198.51.100.4, 10.1.1.1"#,
        ),
        (
            CADDY,
            r#"1700000000123456 203.0.113.7 bob GET example.com /a?b · [("User-Agent", "curl/7.82.0"), ("Accept", "*/*"), ("X-Tier", "gold"), ("X-Tier", "silver")] ·"#,
        ),
        (
            NGINX,
            "1700000000000000 192.0.2.1 · GET example.com /x · [] ·",
        ),
    ] {
        assert_eq!(run(line), expected);
    }
}

#[test]
fn errors_are_reported() {
    for (line, expected) in [
        (
            "{}",
            "expected the time of the request in a field of a known name, found none",
        ),
        (
            r#"{"ts": 1700000000}"#,
            "expected the client's address in a field of a known name, found none",
        ),
        (r#"{"ts": "soon"}"#, "ts: `soon` is not a time"),
        (
            r#"{"request": {"client_ip": "here"}}"#,
            "request.client_ip: `here` is not an IP address",
        ),
        ("[]", "expected an object, found a list"),
        (r#"{"ts": 1"#, "expected `,` or `}`, found the end"),
    ] {
        let fault = read(line.as_bytes(), &mut Event::default()).expect_err(line);
        assert_eq!(fault.to_string(), expected, "{line}");
    }
}

#[test]
fn fields_of_another_type_are_ignored() {
    let line = r#"{"ts": 1700000000, "host": {"name": "log-01"}, "remote_ip": "192.0.2.1", "path": 5, "request": null}"#;
    assert_eq!(run(line), "1700000000000000 192.0.2.1 · · · · · [] ·");
}
