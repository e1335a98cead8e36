//! Detects the format of an input from its first lines.

use super::InputFormat;
use crate::simulate::event::Event;
use memchr::memmem;

/// The maximum number of lines to examine.
const LINES_MAX: usize = 64;

/// The result of the detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatDetection {
    /// A known format.
    Format(InputFormat),
    /// There are no lines, so it does not matter.
    Empty,
    /// No known format.
    Unknown,
}

/// Examines the start of an input. The first recognizable line decides. A JSON line with `at_ms` is a
/// trace, even if it has errors.
pub fn detect(start: &[u8]) -> FormatDetection {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let lines = start.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut lines = lines
        .filter(|line| !line.is_empty())
        .take(LINES_MAX)
        .peekable();
    if lines.peek().is_none() {
        return FormatDetection::Empty;
    }
    lines
        .find_map(format)
        .map_or(FormatDetection::Unknown, FormatDetection::Format)
}

impl InputFormat {
    fn reads(self, line: &[u8]) -> bool {
        self.read(line, &mut Event::default()).is_ok()
    }
}

fn format(line: &[u8]) -> Option<InputFormat> {
    if !line.starts_with(b"{") {
        return InputFormat::Combined
            .reads(line)
            .then_some(InputFormat::Combined);
    }
    if memmem::find(line, b"\"at_ms\"").is_some() {
        return Some(InputFormat::Trace);
    }
    InputFormat::Json.reads(line).then_some(InputFormat::Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_recognizable_line_decides_the_format() {
        let combined = r#"192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 5"#;
        let json =
            r#"{"start_time": "2023-11-14T22:13:20Z", "downstream_remote_address": "192.0.2.1:5"}"#;
        for (text, expected) in [
            ("", FormatDetection::Empty),
            (" \r\n\n", FormatDetection::Empty),
            (
                "\u{feff}{\"at_ms\": 1}\n",
                FormatDetection::Format(InputFormat::Trace),
            ),
            (
                "{\"at_ms\": nonsense",
                FormatDetection::Format(InputFormat::Trace),
            ),
            (combined, FormatDetection::Format(InputFormat::Combined)),
            (
                &format!("garbage\n\n{combined}\n"),
                FormatDetection::Format(InputFormat::Combined),
            ),
            (
                &format!("{{\"level\": \"info\"}}\n{json}"),
                FormatDetection::Format(InputFormat::Json),
            ),
            ("hello\nworld", FormatDetection::Unknown),
            ("{}", FormatDetection::Unknown),
        ] {
            assert_eq!(detect(text.as_bytes()), expected, "{text}");
        }
    }
}
