use super::Instance;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use tidegate::{StoreErrorKind, StoreHealth};
use tidegate_testkit::laws::block_on;
use tracing_subscriber::fmt::MakeWriter;

const LOCAL: &str = "policies: [{name: a, limits: [{name: x, key: user, rate: 100/h}]}]";
const SECOND_US: u64 = 1_000_000;

/// The captured log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Returns the lines that `work` logs on this thread.
fn logged(work: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    let logs = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_ansi(false)
        .without_time()
        .finish();
    tracing::subscriber::with_default(logs, work);
    let text = String::from_utf8(lines.0.lock().clone()).expect("logs are text");
    text.lines().map(|line| line.trim().to_owned()).collect()
}

fn health(instance: &Instance) -> StoreHealth {
    instance.limiter.store_health().expect("it can fail")
}

#[test]
fn an_outage_logs_one_warning_and_one_recovery() {
    let instance = Instance::new(LOCAL);
    let lines = logged(|| {
        instance.ask();
        instance.store.cut();
        for _ in 0..50 {
            instance.ask();
            instance.clock.advance_micros(100_000);
        }
        instance.store.mend();
        for _ in 0..50 {
            instance.ask();
            instance.clock.advance_micros(100_000);
        }
    });
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("WARN") && lines[0].contains("store unavailable"));
    assert!(lines[0].contains("the wire is cut: connection refused"));
    assert!(lines[0].contains("unreachable"), "{}", lines[0]);
    assert!(lines[1].starts_with("INFO") && lines[1].contains("available again"));
}

#[test]
fn an_occasionally_failing_store_is_logged_once() {
    let instance = Instance::new(LOCAL);
    let lines = logged(|| {
        for nth in 0..300 {
            // Every tenth call, so three times a second.
            if nth % 10 == 0 {
                instance.store.cut();
            } else {
                instance.store.mend();
            }
            instance.ask();
            instance.clock.advance_micros(33_000);
        }
    });
    assert_eq!(lines.len(), 1, "{lines:#?}");
}

/// Fails once every `micros`, with four calls in between. Returns the number of log lines.
fn count_logged(instance: &Instance, failures: usize, micros: u64) -> usize {
    let lines = logged(|| {
        for _ in 0..failures {
            instance.store.cut();
            instance.ask();
            instance.store.mend();
            for _ in 0..4 {
                instance.clock.advance_micros(micros / 4);
                instance.ask();
            }
        }
    });
    lines.len()
}

#[test]
fn a_repeatedly_failing_store_is_logged_with_backoff() {
    // 1 s is quiet enough once, then 2 s, 4 s and so on, up to 30 s.
    for (failures, micros, most) in [
        // 200 failures in five minutes.
        (200, SECOND_US + SECOND_US / 2, 3),
        (200, 5 * SECOND_US, 7),
        (200, 20 * SECOND_US, 11),
        // At this interval, every outage is logged, twice.
        (10, 100 * SECOND_US, 20),
    ] {
        let instance = Instance::new(LOCAL);
        let lines = count_logged(&instance, failures, micros);
        assert!((1..=most).contains(&lines), "{lines} every {micros} us");
    }
    let instance = Instance::new(LOCAL);
    let lines = count_logged(&instance, 200, 31 * SECOND_US);
    assert!(lines <= 2 * 200, "{lines}: a pair in 31 s at most");
}

#[test]
fn an_outage_after_flaps_is_logged_at_both_ends() {
    let instance = Instance::new(LOCAL);
    count_logged(&instance, 20, 2 * SECOND_US);
    let lines = logged(|| {
        // Quiet for long enough, regardless of the past.
        for _ in 0..4 {
            instance.clock.advance_micros(8 * SECOND_US);
            instance.ask();
        }
    });
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("available again") && lines[0].contains("failures="));
    let lines = logged(|| {
        instance.store.cut();
        for _ in 0..100 {
            instance.ask();
            instance.clock.advance_micros(SECOND_US);
        }
        instance.store.mend();
        for _ in 0..100 {
            instance.ask();
            instance.clock.advance_micros(SECOND_US);
        }
    });
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("WARN") && lines[1].contains("failures=100"));
}

#[test]
fn the_store_is_up_after_a_quiet_second_after_any_failures() {
    let instance = Instance::new(LOCAL);
    count_logged(&instance, 50, 2 * SECOND_US);
    instance.store.cut();
    instance.ask();
    assert!(!health(&instance).is_up);
    instance.store.mend();
    instance.clock.advance_micros(SECOND_US);
    instance.ask();
    assert!(health(&instance).is_up);
}

#[test]
fn a_foreign_bucket_is_counted_and_is_no_outage() {
    let instance = Instance::new(
        "policies: [{name: a, limits: [{name: x, key: user, rate: 100/h, on_failure: deny}]}]",
    );
    instance.store.corrupt("user:ann");
    let lines = logged(|| {
        for _ in 0..90 {
            assert!(!instance.ask().is_allowed(), "applying on_failure");
            assert!(health(&instance).is_up);
            instance.clock.advance_micros(SECOND_US);
        }
    });
    assert_eq!(lines.len(), 2, "once a minute: {lines:#?}");
    assert!(lines[0].starts_with("WARN") && lines[0].contains("corrupt"));
    let errors = health(&instance).errors;
    assert!(
        errors.contains(&(StoreErrorKind::Corrupt, 90)),
        "{errors:?}"
    );
    // Nor does it end an outage.
    instance.store.cut();
    instance.ask();
    assert!(!health(&instance).is_up);
    instance.store.mend();
    instance.store.corrupt("user:ann");
    instance.clock.advance_micros(SECOND_US);
    instance.ask();
    assert!(!health(&instance).is_up);
}

#[test]
fn health_is_up_until_it_fails_and_again_after_a_quiet_second() {
    let instance = Instance::new(LOCAL);
    assert!(health(&instance).is_up);
    instance.store.cut();
    for _ in 0..3 {
        instance.ask();
    }
    assert!(!health(&instance).is_up);
    let unreachable = |health: StoreHealth| {
        let mut kinds = health.errors.iter();
        kinds
            .find(|(kind, _)| *kind == StoreErrorKind::Unreachable)
            .unwrap()
            .1
    };
    assert_eq!(unreachable(health(&instance)), 3);
    instance.store.mend();
    instance.ask();
    assert!(!health(&instance).is_up, "a moment ago it failed");
    instance.clock.advance_micros(SECOND_US);
    assert!(!health(&instance).is_up, "no request since then");
    instance.ask();
    assert!(health(&instance).is_up);
}

#[test]
fn a_probe_detects_the_outage_without_requests() {
    let instance = Instance::new(LOCAL);
    instance.store.cut();
    assert!(!block_on(instance.limiter.probe_store()).unwrap().is_up);
    instance.clock.advance_micros(SECOND_US);
    assert!(!block_on(instance.limiter.probe_store()).unwrap().is_up);
    instance.store.mend();
    instance.clock.advance_micros(SECOND_US);
    assert!(block_on(instance.limiter.probe_store()).unwrap().is_up);
}
