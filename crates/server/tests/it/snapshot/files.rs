//! Files that are damaged, foreign, in use or cannot be written: the program starts, or reports the reason.

use super::{Home, POLICIES};
use crate::kit::in_time;
use crate::kit::process::{Process, run, tidegate, with_disk};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const ANN: &str = r#"{"user":"ann","cost":5}"#;

fn set_aside(home: &Home) -> Vec<PathBuf> {
    let folder = PathBuf::from(&home.file).parent().unwrap().to_owned();
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let is_aside = |it: &PathBuf| it.to_str().unwrap().contains("buckets.corrupt-");
    let mut files: Vec<PathBuf> = files.filter(is_aside).collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_file_that_is_no_valid_snapshot_is_set_aside() {
    let home = Home::new(POLICIES, "1h");
    let first = home.start().await;
    first.check(ANN).await;
    first.stop().await;
    let good = fs::read(&home.file).unwrap();
    let mode = fs::metadata(&home.file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let mut later = good.clone();
    later[8] = 9;
    let cases = [
        (
            good[..good.len() - 1].to_vec(),
            "it is damaged: it is truncated",
        ),
        (flipped, "it is damaged: a checksum does not match"),
        (later, "its format is version 9"),
        (b"something else".to_vec(), "it is not a snapshot"),
        (Vec::new(), "it is not a snapshot"),
    ];
    for (nth, (bytes, why)) in cases.into_iter().enumerate() {
        fs::write(&home.file, &bytes).unwrap();
        let running = home.start().await;
        assert_eq!(running.remaining(ANN).await, 995, "a full bucket");
        let ended = running.stop().await;
        let lines = ended.stderr.lines();
        let warnings: Vec<&str> = lines
            .filter(|it| it.contains("snapshot_rejected"))
            .collect();
        assert!(
            warnings.len() == 1 && warnings[0].contains(why),
            "{why}: {}",
            ended.stderr
        );
        let aside = set_aside(&home);
        assert_eq!(aside.len(), (nth + 1).min(3), "the last three");
        assert_eq!(fs::read(aside.last().unwrap()).unwrap(), bytes);
        // What it wrote itself is good.
        let next = home.start().await;
        assert_eq!(next.remaining(ANN).await, 990);
        next.stop().await;
    }
}

#[tokio::test]
async fn two_processes_do_not_share_a_file() {
    let home = Home::new(POLICIES, "1h");
    let first = home.start().await;
    let second = run(tidegate(&["serve", "--config", &home.config])).await;
    assert!(!second.status.success());
    assert!(
        second
            .stderr
            .contains("another process uses it; give each instance its own file"),
        "{}",
        second.stderr
    );
    first.check(ANN).await;
    first.stop().await;
    let third = home.start().await;
    assert_eq!(third.remaining(ANN).await, 990);
    third.stop().await;
}

#[tokio::test]
async fn a_folder_that_is_missing_is_an_error_at_the_start() {
    let home = Home::new(POLICIES, "1h");
    let text = fs::read_to_string(&home.config).unwrap();
    home.folder
        .write("tidegate.yaml", text.replace("/buckets'", "/no/buckets'"));
    let ended = run(tidegate(&["serve", "--config", &home.config])).await;
    assert!(!ended.status.success());
    assert!(
        ended.stderr.contains("cannot use the snapshot"),
        "{}",
        ended.stderr
    );
}

/// A file that cannot be replaced, as on a full disk or in a folder that became read-only: here, because a
/// folder is where the new file is to be written first. (The tests may run as root, whom modes do not stop.)
#[tokio::test]
async fn a_write_that_fails_is_logged_once_and_nothing_else_happens() {
    let home = Home::new(POLICIES, "100ms");
    let first = home.start().await;
    assert_eq!(first.remaining(ANN).await, 995);
    first.stop().await;
    let before = fs::read(&home.file).unwrap();
    let obstacle = format!("{}.tmp", home.file);
    fs::create_dir(&obstacle).unwrap();
    fs::write(format!("{obstacle}/in the way"), "").unwrap();

    let second = home.start().await;
    let failing = async {
        while second
            .metric("tidegate_snapshot_writes_total{outcome=\"failed\"}")
            .await
            < 3.0
        {
            tokio::task::yield_now().await;
        }
    };
    in_time("three attempts", failing).await;
    assert_eq!(second.remaining(ANN).await, 990, "it serves");
    let status = second.status().await;
    assert_eq!(status["status"], "STALE");
    assert!(status["error"].is_string());
    assert_eq!(fs::read(&home.file).unwrap(), before, "the last one stays");
    fs::remove_dir_all(&obstacle).unwrap();
    let recovered = async {
        while second.status().await["status"] != "UP" {
            tokio::task::yield_now().await;
        }
    };
    in_time("a write after the obstacle is gone", recovered).await;
    let ended = second.stop().await;
    let count = |event| ended.stderr.lines().filter(|it| it.contains(event)).count();
    assert_eq!(
        (count("snapshot_failed"), count("snapshot_recovered")),
        (1, 1)
    );

    let third = home.start().await;
    assert_eq!(third.remaining(ANN).await, 985);
    third.stop().await;
}

/// A real disk without space: the snapshot is cut, and the previous one stays.
#[tokio::test]
async fn a_full_disk_keeps_the_previous_snapshot() {
    let mut home = Home::new(POLICIES, "100ms");
    let disk = PathBuf::from(&home.file).with_file_name("disk");
    fs::create_dir(&disk).unwrap();
    let disk = disk.to_str().unwrap();
    let file = format!("{disk}/buckets");
    let text = fs::read_to_string(&home.config).unwrap();
    home.folder
        .write("tidegate.yaml", text.replace(&home.file, &file));
    let running = home
        .start_as(|arguments| with_disk(disk, 32, arguments))
        .await;
    home.file = format!("/proc/{}/root{file}", running.process.id());

    assert_eq!(running.remaining(ANN).await, 995);
    let written = async {
        while running.metric("tidegate_snapshot_buckets ").await < 1.0 {
            tokio::task::yield_now().await;
        }
    };
    in_time("the first snapshot", written).await;
    for user in 0..1_000 {
        let check = format!(r#"{{"user":"user-{user}"}}"#);
        assert_eq!(running.remaining(&check).await, 999);
    }
    let failing = async {
        while running.status().await["status"] != "STALE" {
            tokio::task::yield_now().await;
        }
    };
    in_time("a write without space", failing).await;
    let error = running.status().await["error"].to_string();
    assert!(error.contains("No space left on device"), "{error}");
    assert_eq!(running.remaining(ANN).await, 990, "it serves");
    // Except during an attempt.
    let half = PathBuf::from(format!("{}.tmp", home.file));
    let removed = async {
        while half.exists() {
            tokio::task::yield_now().await;
        }
    };
    in_time("half a snapshot takes up no space", removed).await;

    // What is on the disk is a valid snapshot.
    let bytes = fs::read(&home.file).unwrap();
    running.kill().await;
    let next = Home::new(POLICIES, "1h");
    fs::write(&next.file, bytes).unwrap();
    let next = next.start().await;
    assert!(next.remaining(ANN).await <= 990);
    next.stop().await;
}

#[tokio::test]
async fn a_snapshot_of_redis_is_a_mistake() {
    let home = Home::new(POLICIES, "1h");
    let text = fs::read_to_string(&home.config).unwrap();
    let path = home.folder.write(
        "redis.yaml",
        text.replace("url: memory", "url: redis://127.0.0.1"),
    );
    let ended = run(tidegate(&["validate", &path])).await;
    assert!(!ended.status.success());
    assert!(
        ended.stderr.contains("`snapshot` needs `url: memory`"),
        "{}",
        ended.stderr
    );
}

/// The one that holds the lock is killed: its lock ends with it.
#[tokio::test]
async fn a_lock_does_not_outlive_its_process() {
    let home = Home::new(POLICIES, "1h");
    home.start().await.kill().await;
    let mut next = Process::start(tidegate(&["serve", "--config", &home.config]));
    next.address("admin").await;
}
