//! Codes, their effects and the texts.

use super::*;

#[test]
fn codes_have_classes() {
    for code in ["MOVED", "OOM", "NOSCRIPT", "LOADING", "READONLY", "NOPERM"] {
        assert_eq!(class_of(code), CallEffect::NotExecuted, "{code}");
    }
    for code in ["ERR", "WRONGTYPE", "ANYTHING"] {
        assert_eq!(class_of(code), CallEffect::Executed, "{code}");
    }
}

#[test]
fn an_error_wrapped_by_an_old_server_is_recognized() {
    let old = "Error running script (call to f_0bc5): @user_script:1: @user_script: 1: \
               -OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(nested_code("ERR", old), Some("OOM"));
    assert_eq!(nested_code("ERR", "Error running script: -nonsense"), None);
    assert_eq!(nested_code("OOM", old), None);
    assert_eq!(nested_code("ERR", "unknown command: -OOM"), None);
}

#[test]
fn errors_within_a_script_may_have_had_an_effect() {
    let class = |reply: &str| {
        let reply = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
        let redis::Value::ServerError(error) = reply else {
            panic!("an error: {reply:?}");
        };
        let error = CallError::server(&error);
        let code = error.code().unwrap().to_owned();
        (code, error.class())
    };
    let place = "script: 3f969afca22762bce4419e9bdbff4cb40e7c165e, on @user_script:1.";
    let old = "ERR Error running script (call to f_0bc5): @user_script:1: @user_script: 1:";
    for (reply, code) in [
        (format!("NOPERM no permissions {place}"), "NOPERM"),
        (format!("CROSSSLOT keys {place}"), "CROSSSLOT"),
        (format!("TRYAGAIN {place}"), "TRYAGAIN"),
        (format!("BUSY {place}"), "BUSY"),
        (
            format!("ERR The user executing the script can't run this command {place}"),
            "NOPERM",
        ),
        (
            format!("ERR ACL failure in script: User u has no permissions {place}"),
            "NOPERM",
        ),
        (
            format!("{old} The user executing the script can't run this command"),
            "NOPERM",
        ),
        (format!("{old} -NOPERM no permissions"), "NOPERM"),
        // A script may return the error as a value.
        (
            "ERR The user executing the script can't run this command".to_owned(),
            "NOPERM",
        ),
    ] {
        let expected = (code.to_owned(), CallEffect::Executed);
        assert_eq!(class(&reply), expected, "{reply}");
    }
    for code in FIRST_WRITE {
        let expected = (code.to_owned(), CallEffect::NotExecuted);
        assert_eq!(class(&format!("{code} not now")), expected);
        assert_eq!(class(&format!("{code} not now {place}")), expected);
        assert_eq!(class(&format!("{old} -{code} not now")), expected);
    }
    for reply in [
        "NOPERM this user has no permissions to run the 'evalsha' command",
        "NOSCRIPT No matching script. Please use EVAL.",
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL.",
    ] {
        assert_eq!(class(reply).1, CallEffect::NotExecuted, "{reply}");
    }
}

#[test]
fn a_missing_permission_in_a_script_is_recognized() {
    let detail = "The user executing the script can't run this command or subcommand script: 3";
    assert_eq!(missing_right("ERR", detail), Some("NOPERM"));
    assert_eq!(missing_right("ERR", "value is not an integer"), None);
    assert_eq!(missing_right("OOM", detail), None);
}

#[test]
fn errors_that_need_an_operator_are_permanent() {
    let of = |code: &str| {
        CallError::new(class_of(code), CallErrorKind::Server(code.to_owned()), "").is_transient()
    };
    for code in ["NOPERM", "NOAUTH", "WRONGPASS", "WRONGTYPE", "ERR"] {
        assert!(!of(code), "{code}");
    }
    for code in ["OOM", "LOADING", "TRYAGAIN"] {
        assert!(of(code), "{code}");
    }
    let timeout = CallError::new(CallEffect::Ambiguous, CallErrorKind::Timeout, "");
    assert!(timeout.is_transient());
}

#[test]
fn errors_are_readable() {
    let error = CallError::new(
        CallEffect::NotExecuted,
        CallErrorKind::Server("OOM".to_owned()),
        "no room",
    )
    .at(&Address::new("::1", 7000));
    assert_eq!(
        error.to_string(),
        "Redis at [::1]:7000 answered OOM: no room"
    );
}
