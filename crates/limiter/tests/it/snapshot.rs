//! A program that embeds a limiter and keeps its buckets over a restart.

use futures_util::FutureExt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tidegate::{
    AnyStore, BuildError, Config, LimitSpec, Limiter, ManualClock, Request, SnapshotSettings,
    Timestamp, plans_from_text,
};

/// A folder for one test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Relaxed);
        let name = format!("tidegate-limiter-snapshot-{}-{nth}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("buckets")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn limiter(file: &Path) -> Result<Limiter, BuildError> {
    let limit = LimitSpec::new("all").band("10/d");
    let builder = Limiter::builder().limit(limit).max_keys(100);
    builder.snapshot(SnapshotSettings::new(file)).build()
}

fn remaining<S: tidegate::Store>(limiter: &Limiter<S>, request: &Request<'_>) -> u64 {
    let decision = limiter
        .check(request)
        .now_or_never()
        .expect("no call is made");
    let decision = decision.expect("a decision");
    decision.binding().expect("a limit").remaining()
}

#[test]
fn dropping_the_last_clone_writes_the_snapshot() {
    let folder = Folder::new();
    let first = limiter(&folder.file()).expect("a limiter");
    let clone = first.clone();
    assert_eq!(remaining(&first, &Request::new().cost(3)), 7);
    drop(first);
    assert!(!folder.file().exists(), "a clone is left");
    assert_eq!(remaining(&clone, &Request::new()), 6);
    drop(clone);
    let second = limiter(&folder.file()).expect("a limiter");
    assert_eq!(second.snapshot().expect("a snapshot").restored, 1);
    assert_eq!(remaining(&second, &Request::new()), 5);
}

#[test]
fn a_file_has_one_limiter_at_a_time() {
    let folder = Folder::new();
    let first = limiter(&folder.file()).expect("a limiter");
    let second = limiter(&folder.file()).expect_err("the file is in use");
    assert!(matches!(&second, BuildError::Snapshot { .. }), "{second}");
    assert!(
        second.to_string().contains("another process uses it"),
        "{second}"
    );
    drop(first);
    limiter(&folder.file()).expect("the first has ended");
    let missing = limiter(&folder.0.join("no/buckets")).expect_err("there is no such folder");
    assert!(matches!(missing, BuildError::Snapshot { .. }));
}

#[tokio::test]
async fn a_task_writes_the_snapshot_of_a_configuration() {
    let folder = Folder::new();
    let text = format!(
        "store: {{ snapshot: {{ file: '{}', every: 100ms }} }}\n\
         policies: [{{ name: api, limits: [{{ name: all, rate: 10/d }}] }}]",
        folder.file().display()
    );
    let start = async || {
        let config = Config::from_yaml(&text).expect("a configuration");
        Limiter::builder()
            .config(config)
            .start()
            .await
            .expect("a limiter")
    };
    let first: Limiter<AnyStore> = start().await;
    assert_eq!(remaining(&first, &Request::new().cost(4)), 6);
    assert!(first.write_snapshot().await.expect("a write"));
    let status = first.snapshot().expect("a snapshot");
    assert_eq!((status.written, status.buckets), (1, 1));
    assert_eq!(status.every, Duration::from_millis(100));
    let length = fs::metadata(folder.file()).expect("a file").len();
    assert_eq!(status.bytes, length);
    assert!(first.write_snapshot().await.expect("a write"));
    assert_eq!(first.snapshot().map(|it| it.unchanged), Some(1));

    let keeping = first.keep_snapshots();
    assert_eq!(remaining(&first, &Request::new()), 5);
    let written = async {
        while first.snapshot().is_none_or(|it| it.written < 2) {
            tokio::task::yield_now().await;
        }
    };
    futures_util::future::select(std::pin::pin!(keeping), std::pin::pin!(written)).await;
    // As if the process was killed: a copy of what is there now.
    let copy = fs::read(folder.file()).expect("a file");
    drop(first);
    fs::write(folder.file(), copy).expect("a copy");
    let second = start().await;
    assert_eq!(remaining(&second, &Request::new()), 4);
}

/// The rates of a plan are known only after the snapshot was read.
#[test]
fn buckets_with_rates_of_a_plan_are_found_again() {
    let folder = Folder::new();
    let text = format!(
        "store: {{ snapshot: {{ file: '{}' }} }}
plans: [{{ name: shop, file: plans.yaml }}]
policies:
  - name: api
    limits:
      - {{ name: each, key: user, rate: {{ plan: shop, subject: user, default: 1/d }} }}",
        folder.file().display()
    );
    let start = |plans: &str| {
        let limiter = Limiter::from_yaml(&text).expect("a limiter");
        let plans = plans_from_text(plans, false).expect("plans");
        limiter.replace_plans("shop", plans).expect("valid plans");
        limiter
    };
    let first = start("subjects: { ann: 100/d, bob: 20/d }");
    assert_eq!(remaining(&first, &Request::new().user("ann").cost(40)), 60);
    assert_eq!(remaining(&first, &Request::new().user("bob").cost(5)), 15);
    drop(first);
    let second = start("subjects: { ann: 100/d, bob: 40/d }");
    assert_eq!(remaining(&second, &Request::new().user("ann").cost(0)), 60);
    // A quarter of a day is owed, as after a reload.
    assert_eq!(remaining(&second, &Request::new().user("bob").cost(0)), 30);
}

/// Nothing but the bucket remembers that a share was reached.
#[test]
fn a_restart_repeats_no_warning_and_the_next_window_warns_again() {
    let folder = Folder::new();
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let start = || {
        let yaml = "policies: [{ name: api, limits: [{ name: day, key: user, rate: 10/d, \
                    algorithm: fixed-window, warn: [80%, 100%] }] }]";
        let built = Limiter::builder().yaml(yaml).expect("valid");
        let built = built.snapshot(SnapshotSettings::new(folder.file()));
        built.clock(clock.clone()).build().expect("a limiter")
    };
    let reached = |limiter: &Limiter<_>, cost: u64| -> Vec<u8> {
        let decision = limiter.check_now(&Request::new().user("ann").cost(cost));
        let decision = decision.expect("a decision");
        let shares = decision.warnings().map(|band| band.reached_share());
        shares.flatten().collect()
    };
    let before = start();
    assert_eq!(reached(&before, 8), [80]);
    // Which writes the snapshot.
    drop(before);
    let after = start();
    assert_eq!(
        (reached(&after, 1), reached(&after, 1)),
        (vec![], vec![100])
    );
    drop(after);
    clock.advance_micros(86_400_000_000);
    let next = start();
    assert_eq!((reached(&next, 7), reached(&next, 1)), (vec![], vec![80]));
}
