use super::{of_response, to_request};
use crate::wire::rls::read::RlsCall;
use crate::wire::rls::write::{self, CurrentLimit, DescriptorStatus, RlsCode};
use tidegate_policy::{Cost, DescriptorHits, LimitOverride};

#[test]
fn the_example_of_envoys_ratelimit_service_is_parsed() {
    let message = to_request(
        br#"{"domain": "dummy", "descriptors": [{"entries": [{"key": "one_per_day", "value": "something"}]}]}"#,
    );
    let message = message.unwrap();
    let call = RlsCall::read(&message).unwrap();
    let descriptors = call.descriptors().unwrap();
    assert_eq!((call.domain, call.cost()), ("dummy", Cost::ONE_REQUEST));
    assert_eq!(descriptors[0].entries, [("one_per_day", "something")]);
}

#[test]
fn both_name_styles_and_numbers_as_text_are_parsed() {
    let spellings: [&[u8]; 2] = [
        br#"{"domain":"d","hitsAddend":"7","descriptors":[
            {"entries":[{"key":"a","value":"\u00fc"}],"limit":{"requestsPerUnit":5,"unit":"HOUR"},"hitsAddend":"0"},
            {"entries":null,"hitsAddend":3,"isNegativeHits":true}]}"#,
        br#"{"domain":"d","hits_addend":7.0,"descriptors":[
            {"entries":[{"key":"a","value":"\u00fc"}],"limit":{"requests_per_unit":"5","unit":3},"hits_addend":0},
            {"hits_addend":3e0,"is_negative_hits":true}]}"#,
    ];
    for text in spellings {
        let message = to_request(text).unwrap();
        let call = RlsCall::read(&message).unwrap();
        let descriptors = call.descriptors().unwrap();
        assert_eq!(call.cost(), 7);
        assert_eq!(descriptors[0].entries, [("a", "ü")]);
        assert_eq!(descriptors[0].hits, DescriptorHits::Take(0));
        let limit = LimitOverride {
            amount: 5,
            period_us: 3_600_000_000,
        };
        assert_eq!(descriptors[0].limit, Some(limit));
        assert_eq!(descriptors[1].hits, DescriptorHits::GiveBack(3));
        assert!(descriptors[1].entries.is_empty());
    }
}

#[test]
fn errors_name_their_position() {
    let told = |text: &str| to_request(text.as_bytes()).unwrap_err().to_string();
    let cases = [
        (r#"{"domian":"d"}"#, "domian: unknown field"),
        (
            r#"{"hitsAddend":-1}"#,
            "hitsAddend: expected a whole number",
        ),
        (
            r#"{"hitsAddend":4294967296}"#,
            "hitsAddend: expected a whole",
        ),
        (
            r#"{"hitsAddend":1.5}"#,
            "hitsAddend: expected a whole number",
        ),
        (
            r#"{"hits_addend":1,"hitsAddend":1}"#,
            "hitsAddend: duplicate field",
        ),
        (
            r#"{"descriptors":[{"entries":[{"key":1}]}]}"#,
            "descriptors[0].entries[0].key: expected a string",
        ),
        (
            r#"{"descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}"#,
            "expected one of UNKNOWN, SECOND",
        ),
        (
            r#"{"descriptors":[{"isNegativeHits":1}]}"#,
            "expected true or false",
        ),
        ("{} {}", "expected nothing more"),
    ];
    for (text, part) in cases {
        assert!(told(text).contains(part), "{text}: {}", told(text));
    }
}

#[test]
fn a_response_follows_the_protobuf_json_mapping() {
    let mut message = Vec::new();
    write::code(&mut message, RlsCode::OverLimit);
    let limit = CurrentLimit {
        amount: 5,
        period_us: 60_000_000,
        name: "per-user",
        reset_s: 42,
    };
    write::status(
        &mut message,
        &DescriptorStatus {
            code: RlsCode::OverLimit,
            limit: Some(limit),
            remaining: 0,
        },
    );
    write::status(
        &mut message,
        &DescriptorStatus {
            code: RlsCode::Ok,
            limit: None,
            remaining: u32::MAX,
        },
    );
    write::response_header(&mut message, "retry-after", b"42");
    write::raw_body(&mut message, b"{}");
    let json = String::from_utf8(of_response(&message)).unwrap();
    assert_eq!(
        json,
        r#"{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"per-user","requestsPerUnit":5,"unit":"MINUTE"},"durationUntilReset":"42s"},{"code":"OK","limitRemaining":4294967295}],"responseHeadersToAdd":[{"key":"retry-after","value":"42"}],"rawBody":"e30="}"#
    );
}
