//! Parsing of numbers in the open layout, which the script's tests cannot cover: only these texts
//! are numbers.

use super::key::{Form, OpenKey};
use super::text::{decimal, millis, nanos, signed, whole, whole_nanos};

#[test]
fn key_numbers_match_the_documentation() {
    for (text, number) in [
        ("14.5", Some(14.5)),
        ("0", Some(0.0)),
        ("-2.25", Some(-2.25)),
        ("3.", Some(3.0)),
        ("1e-05", Some(0.000_01)),
        ("1.5e+3", Some(1_500.0)),
        ("", None),
        ("-", None),
        (".5", None),
        ("1E5", None),
        ("1e5", None),
        ("1e+", None),
        ("+1", None),
        ("0x10", None),
        ("inf", None),
        ("nan", None),
        (" 1", None),
        ("1 ", None),
        ("1.2.3", None),
        ("000000000000000000000000000000001", None),
    ] {
        assert_eq!(decimal(text.as_bytes()), number, "{text:?}");
    }
    assert_eq!(whole(b"9007199254740992"), Some(1 << 53));
    assert_eq!(whole(b"9007199254740993"), None);
    assert_eq!(whole(b"-1"), None);
    assert_eq!(signed(b"-17"), Some(-17));
    assert_eq!(signed(b"--17"), None);
}

#[test]
fn instants_between_two_microseconds_are_the_next() {
    assert_eq!(millis(b"1708956000000"), Some(1_708_956_000_000_000));
    assert_eq!(millis(b"0.0001"), Some(1));
    assert_eq!(millis(b"-1"), None);
    assert_eq!(nanos(b"1708956000000000000"), Some(1_708_956_000_000_000));
    assert_eq!(nanos(b"1708956000000000001"), Some(1_708_956_000_000_001));
    assert_eq!(nanos(b"1.7e+18"), Some(1_700_000_000_000_000));
    assert_eq!(nanos(b"7"), Some(1));
    assert_eq!(nanos(b"0"), Some(0));
    assert_eq!(whole_nanos(b"9007199254740992001"), None);
    assert_eq!(whole_nanos(b"1.7e+18"), None);
}

#[test]
fn a_key_round_trips_its_parts() {
    let key = OpenKey {
        form: Form::Window,
        name: b"rate_limits",
        field: b"6762b5db032b200023854b2c",
    };
    assert_eq!(OpenKey::read(&key.write()), key);
    let packed = OpenKey::packed(b"tg:{a}b");
    assert_eq!(OpenKey::read(&packed.write()), packed);
}
