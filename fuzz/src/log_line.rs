//! Any bytes as a line of an access log or a trace: it is read or rejected, and nothing panics.
//!
//! How: the line goes to every format, and to the detection. Times must be within the range of
//! every store; error messages must not contain control characters of the text.

use tidegate_server::simulate::event::Event;
use tidegate_server::simulate::formats::InputFormat;
use tidegate_server::simulate::formats::detect::{FormatDetection, detect};
use tidegate_server::timestamps::{self, LATEST};

fuzz_target!(|line: &[u8]| {
    for format in [InputFormat::Trace, InputFormat::Combined, InputFormat::Json] {
        let mut event = Event::default();
        match format.read(line, &mut event) {
            Ok(()) => {
                assert!(event.at <= LATEST);
                let pairs = event.question.pairs();
                let request = event.question.request(&pairs);
                assert!(!format!("{request:?}").is_empty());
            }
            Err(fault) => {
                assert!(fault.at() <= line.len(), "{} of {}", fault.at(), line.len());
                let shown = fault.to_string();
                assert!(!shown.contains(char::is_control), "{shown:?}");
            }
        }
    }
    if let FormatDetection::Format(InputFormat::Combined | InputFormat::Json) = detect(line) {
        let mut lines = line.split(|byte| *byte == b'\n');
        assert!(lines.any(|line| !line.trim_ascii().is_empty()));
    }
    if let Some(at) = std::str::from_utf8(line).ok().and_then(timestamps::any) {
        assert!(at <= LATEST);
        // Times are shown in milliseconds, and parse as such.
        let millis = at.as_micros() / 1_000;
        let again = timestamps::any(&timestamps::show(at)).expect("a written timestamp parses");
        assert_eq!(again.as_micros() / 1_000, millis);
    }
});
