//! Colours on a terminal, or as set by `--color`, `NO_COLOR` and `CLICOLOR_FORCE`.

use crate::kit::TWO_A_MINUTE;
use crate::kit::folder::Folder;
use crate::kit::process::{run, tidegate};
use crate::kit::terminal;

const ESCAPE: char = '\u{1b}';

#[tokio::test]
async fn validate_uses_colours_only_if_wanted() {
    let folder = Folder::make();
    let good = folder.write("good.yaml", TWO_A_MINUTE);
    let bad = folder.write("bad.yaml", TWO_A_MINUTE.replace("1/min", "1/x"));
    for (flags, variables, expected) in [
        (vec![], vec![], true),
        (vec![], vec![("NO_COLOR", "1")], false),
        (vec![], vec![("TERM", "dumb")], false),
        (vec!["--color", "never"], vec![], false),
        (vec!["--color", "always"], vec![("NO_COLOR", "1")], true),
    ] {
        for (file, code) in [(&good, 0), (&bad, 2)] {
            let mut arguments = vec!["validate", file.as_str()];
            arguments.extend(&flags);
            let shown = terminal::run(&arguments, &variables, "");
            assert_eq!(shown.status.code(), Some(code), "{}", shown.text);
            let is_colored = shown.text.contains(ESCAPE);
            assert_eq!(
                is_colored, expected,
                "{flags:?} {variables:?}: {}",
                shown.text
            );
        }
    }
    for (file, flags, expected) in [
        (&good, vec![], false),
        (&bad, vec![], false),
        (&good, vec!["--color=always"], true),
        (&bad, vec!["--color=always"], true),
    ] {
        let mut arguments = vec!["validate", file.as_str()];
        arguments.extend(&flags);
        let ended = run(tidegate(&arguments)).await;
        let text = ended.stdout + &ended.stderr;
        assert_eq!(text.contains(ESCAPE), expected, "{flags:?}: {text}");
    }
}

#[test]
fn the_summary_of_simulate_has_colours_on_a_terminal() {
    let folder = Folder::make();
    let config = folder.write("config.yaml", TWO_A_MINUTE);
    let trace = folder.write(
        "trace.jsonl",
        "{\"at_ms\": 1, \"ip\": \"192.0.2.1\"}\n".repeat(3),
    );
    let arguments = [
        "simulate",
        "--config",
        &config,
        "--trace",
        &trace,
        "--summary-only",
    ];
    let colored = terminal::run(&arguments, &[], "").text;
    assert!(
        colored.contains("3 requests: \u{1b}[1m\u{1b}[32m2 allowed\u{1b}[0m"),
        "{colored:?}"
    );
    let plain = terminal::run(&arguments, &[("NO_COLOR", "1")], "").text;
    assert!(
        plain.contains("3 requests: 2 allowed (0 matched no limit), 1 refused\n"),
        "{plain:?}"
    );
}

/// Regression: logs in text chose colours by the terminal alone.
#[test]
fn no_color_was_ignored_by_logs_in_text() {
    let folder = Folder::make();
    // It logs a warning and exits, because the port is in use.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = TWO_A_MINUTE.replacen("127.0.0.1:0", &address.to_string(), 1);
    let config = folder.write("config.yaml", text);
    for format in ["text", "auto"] {
        let arguments = ["serve", &config, "--log-format", format];
        for (variables, expected) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
            let shown = terminal::run(&arguments, variables, "");
            assert_eq!(shown.status.code(), Some(1), "{}", shown.text);
            let log = shown.text.lines().find(|line| line.contains("INFO"));
            let log = log.unwrap_or_else(|| panic!("no log: {}", shown.text));
            assert_eq!(log.contains(ESCAPE), expected, "{format}: {log:?}");
        }
    }
}
