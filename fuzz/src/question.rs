//! Any bytes as a check request: it is read or rejected, and nothing panics.
//!
//! How: Tidegate's reader and `serde_json` must accept the same JSON, apart from the bound on
//! nesting. Error messages must not contain control characters of the text.

use tidegate_frontends::wire::fault::WireFault;
use tidegate_frontends::wire::json::{DEPTH_MAX, JsonReader};
use tidegate_frontends::wire::question::{QuestionBody, LIST_MAX, JsonQuestion};

fuzz_target!(|bytes: &[u8]| {
    check_json(bytes);
    match QuestionBody::read(bytes) {
        Ok(QuestionBody::One(question)) => check_question(&question),
        Ok(QuestionBody::Several(questions)) => {
            assert!(questions.len() <= LIST_MAX);
            questions.iter().for_each(check_question);
        }
        Err(fault) => check_fault(&fault, bytes),
    }
    let mut question = JsonQuestion::default();
    match question.read_at(bytes) {
        Ok(_) => check_question(&question),
        Err(fault) => check_fault(&fault, bytes),
    }
});

fn check_question(question: &JsonQuestion<'_>) {
    let pairs = question.pairs();
    let request = question.request(&pairs);
    assert_eq!(request.headers.len(), question.headers.len());
    assert!(!format!("{request:?}").is_empty());
}

fn check_fault(fault: &WireFault, bytes: &[u8]) {
    assert!(fault.at() <= bytes.len());
    assert!(fault.column(bytes) <= bytes.len() + 1);
    let shown = fault.to_string();
    assert!(!shown.is_empty());
    assert!(!shown.contains(char::is_control), "{shown:?}");
}

fn check_json(bytes: &[u8]) {
    let ours = JsonReader::new(bytes).and_then(|mut reader| {
        reader.skip()?;
        reader.end()
    });
    let theirs = serde_json::from_slice::<serde_json::Value>(bytes);
    match (ours, theirs) {
        (Ok(()), Ok(_)) | (Err(_), Err(_)) => {}
        // serde_json reads numbers into a double, and some are too large for that.
        (Ok(()), Err(error)) => assert!(
            error.to_string().starts_with("number out of range"),
            "{error}"
        ),
        (Err(fault), Ok(value)) => assert!(depth(&value) > usize::from(DEPTH_MAX), "{fault}"),
    }
}

fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
