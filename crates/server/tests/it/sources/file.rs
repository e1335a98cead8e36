//! The watched config file.

use super::kit::{Program, REFUSED, nth_rate, policies, under_load};
use crate::kit::get;
use std::fs;
use std::path::Path;
use std::process::Command;

const RELOADED: &str = "config reloaded";

#[tokio::test]
async fn a_file_that_changes_is_served_without_a_signal() {
    let mut program = Program::start(&policies("api", "5/s")).await;
    for rate in ["6/s", "7/s"] {
        program.write(&policies("api", rate));
        program.process.logs(RELOADED, ("level", "INFO")).await;
        assert_eq!(program.band("api").await, rate);
    }
    // The metric is updated a moment after the log.
    let applied = "tidegate_source_loads_total{source=\"file\",outcome=\"applied\"}";
    program.until(applied, 3.0).await;
}

#[tokio::test]
async fn an_invalid_file_changes_nothing_and_is_logged_once() {
    let refused = "tidegate_source_rejected{source=\"file\"}";
    let mut program = Program::start(&policies("api", "5/s")).await;
    program.write("policies: [{ name: api, limits: [{ name: all, rate: fast }] }]");
    program.process.logs(REFUSED, ("source", "file")).await;
    assert_eq!(program.band("api").await, "5/s");
    assert_eq!(program.sample(refused).await, Some(1.0));
    // It is not read again until it changes again, and then applies.
    program.write(&policies("api", "6/s"));
    program.process.logs(RELOADED, ("level", "INFO")).await;
    assert_eq!(program.band("api").await, "6/s");
    assert_eq!(program.loads("file", "rejected").await, 1);
    // The metric is updated a moment after the log.
    program.until(refused, 0.0).await;
    assert_eq!(get(program.admin, "/readyz").await.status, 200);
}

#[tokio::test]
async fn a_restored_file_was_reported_as_rejected_until_another_change() {
    let refused = "tidegate_source_rejected{source=\"file\"}";
    let served = policies("api", "5/s");
    let mut program = Program::start(&served).await;
    // Neither can be parsed, so nothing else is awaited.
    for broken in ["sources: [{ htp: {} }]", "policies: ["] {
        program.write(broken);
        program.process.logs(REFUSED, ("source", "file")).await;
        assert_eq!(program.sample(refused).await, Some(1.0));
        program.write(&served);
        program.process.logs(RELOADED, ("level", "INFO")).await;
        // The metric is updated a moment after the log.
        program.until(refused, 0.0).await;
        assert_eq!(program.band("api").await, "5/s");
    }
    let status = get(program.admin, "/status").await.json();
    assert_eq!(status["status"], "UP", "{status}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_briefly_unreadable_file_was_not_read_until_another_change() {
    let mut program = Program::start(&policies("api", "5/s")).await;
    // Fewer than are open.
    program.process.allow_files(3).await;
    program.write(&policies("api", "6/s"));
    program.process.logs(REFUSED, ("source", "file")).await;
    let log = program.process.logged.join("\n");
    assert!(log.contains("Too many open files"), "{log}");
    program.process.allow_files(256).await;
    program.process.logs(RELOADED, ("level", "INFO")).await;
    assert_eq!(program.band("api").await, "6/s");
    assert_eq!(program.loads("file", "rejected").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_every_question_is_answered_while_the_file_changes() {
    let mut program = Program::start(&policies("api", &nth_rate(0))).await;
    under_load(&mut program, "api", async |program, _, rate| {
        program.write(&policies("api", &rate));
        program.process.signal("HUP").await;
        program.process.logs(RELOADED, ("level", "INFO")).await;
    })
    .await;
}

/// Replaces the file at `path` with something invalid.
fn break_file(program: &Program, path: &Path, nth: u64, valid: &str) {
    let cut = |quarters: usize| valid.get(..valid.len() * quarters / 4).unwrap_or_default();
    match nth % 6 {
        // Half a file.
        0 => program.write(cut(1)),
        1 => program.write(cut(3)),
        2 => program.write(&valid.replace("/s", "/fortnight")),
        3 => fs::write(path, [0; 4_096]).unwrap(),
        4 => {
            fs::remove_file(path).unwrap();
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        }
        _ => {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }
    }
}

/// Row 21 of the failure table, under load: the last valid configuration decides every request.
/// Regression: a named pipe in place of the file blocked all reloads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_21_a_configuration_that_is_wrong_or_half_written_changes_nothing() {
    let mut program = Program::start(&policies("api", &nth_rate(0))).await;
    let beside = program.folder.write("beside", "");
    let path = Path::new(&beside).with_file_name("tidegate.yaml");
    under_load(&mut program, "api", async |program, nth, rate| {
        let valid = policies("api", &rate);
        break_file(program, &path, nth, &valid);
        program.process.signal("HUP").await;
        program.process.logs(REFUSED, ("source", "file")).await;
        assert_eq!(program.band("api").await, nth_rate(nth - 1));
        fs::remove_file(&path)
            .or_else(|_| fs::remove_dir(&path))
            .unwrap();
        program.write(&valid);
        program.process.signal("HUP").await;
        program.process.logs(RELOADED, ("level", "INFO")).await;
    })
    .await;
}
