use super::Instance;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use tidegate::{StoreErrorKind, StoreHealth};
use tidegate_testkit::laws::block_on;
use tracing_subscriber::fmt::MakeWriter;

const LOCAL: &str = "policies: [{name: a, limits: [{name: x, key: user, rate: 100/h}]}]";
const SECOND_US: u64 = 1_000_000;

/// What was logged.
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

/// The lines that `work` logs on this thread.
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
fn one_warning_on_the_way_in_and_one_line_on_the_way_back() {
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
    assert!(lines[0].starts_with("WARN") && lines[0].contains("the store does not answer"));
    assert!(lines[0].contains("the wire is cut: connection refused"));
    assert!(lines[0].contains("unreachable"), "{}", lines[0]);
    assert!(lines[1].starts_with("INFO") && lines[1].contains("answers again"));
}

#[test]
fn a_store_that_fails_now_and_then_is_told_once() {
    let instance = Instance::new(LOCAL);
    let lines = logged(|| {
        for nth in 0..300 {
            // Every tenth, and so three times a second.
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

#[test]
fn nothing_is_told_twice_in_a_second() {
    let instance = Instance::new(LOCAL);
    let lines = logged(|| {
        for _ in 0..200 {
            // Fails once, is quiet for just long enough, and fails again right away.
            instance.store.cut();
            instance.ask();
            instance.store.mend();
            instance.clock.advance_micros(SECOND_US + 1);
            instance.ask();
        }
    });
    // Two hundred seconds.
    assert!(lines.len() <= 201, "{}", lines.len());
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
    assert!(!health(&instance).is_up, "nobody has asked it since");
    instance.ask();
    assert!(health(&instance).is_up);
}

#[test]
fn a_probe_finds_out_where_nobody_asks() {
    let instance = Instance::new(LOCAL);
    instance.store.cut();
    assert!(!block_on(instance.limiter.probe_store()).unwrap().is_up);
    instance.clock.advance_micros(SECOND_US);
    assert!(!block_on(instance.limiter.probe_store()).unwrap().is_up);
    instance.store.mend();
    instance.clock.advance_micros(SECOND_US);
    assert!(block_on(instance.limiter.probe_store()).unwrap().is_up);
}
