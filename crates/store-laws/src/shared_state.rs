//! Checks of every [`SharedState`] that has sets and counts, in memory or in Redis.

use std::time::Duration;
use tidegate_core::SharedState;
use tidegate_core::shared_state::{CountMap, PeriodState, PeriodTerms, SharedCounts, SharedSets};

const MOMENT: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// Checks the sets and counts of `state`, under names that begin with `name`.
///
/// # Panics
///
/// If the state has none, or they differ from their documentation.
pub async fn check(state: &dyn SharedState, name: &str) {
    let sets = state.sets().expect("it has sets");
    check_set(sets, &format!("{name}-set")).await;
    let map = CountMap {
        name: format!("{name}-map"),
        names_max: 2,
        lasts: None,
    };
    let mut counts = state.counts(&map).expect("it has counts");
    check_counts(&mut *counts).await;
}

async fn check_set(sets: &dyn SharedSets, set: &str) {
    let add = async |members: &[&str], length| {
        let members: Vec<&[u8]> = members.iter().map(|it| it.as_bytes()).collect();
        texts(&sets.add(set, &members, length).await.expect("added"))
    };
    let read = async || texts(&sets.read(set, 10, HOUR).await.expect("read"));
    sets.ready().await.expect("it can be reached");
    assert_eq!(read().await, [""; 0], "there is no such set");
    assert_eq!(add(&["always", "late"], None).await, ["always", "late"]);
    assert_eq!(add(&["soon"], Some(MOMENT)).await, ["soon"]);
    assert_eq!(add(&["hour", "late"], Some(HOUR)).await, ["hour"]);
    // The later end counts, and none is the latest.
    assert_eq!(add(&["hour", "soon"], Some(MOMENT)).await, [""; 0]);
    let ends = sets.ends(set, 10, HOUR).await.expect("ends");
    let (ending, left): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
    assert_eq!(texts(&ending), ["hour", "soon"]);
    assert!(left.iter().any(|left| *left > HOUR / 2), "{left:?}");
    let mut ended = Vec::new();
    while ended.is_empty() {
        ended = sets.expire(set).await.expect("expired");
    }
    assert_eq!(texts(&ended), ["soon"]);
    assert_eq!(read().await, ["always", "hour", "late"]);
    assert!(sets.read(set, 2, HOUR).await.is_err(), "more than two");
}

async fn check_counts(counts: &mut dyn SharedCounts) {
    let counted = |counts: &[(&str, u64)]| -> Vec<(Vec<u8>, u64)> {
        let counts = counts.iter();
        counts
            .map(|(name, count)| (name.as_bytes().to_vec(), *count))
            .collect()
    };
    let batch = counted(&[("many", 3), ("few", 1), ("no room", 5)]);
    let added = counts.add(&batch).await.expect("added");
    assert_eq!((added.counted, added.doubtful), (9, 0));
    assert_eq!(closed(counts).await, counted(&[("many", 3)]));
    assert!(counts.finish().await.expect("finished"));
    // The next period starts from zero.
    counts.add(&counted(&[("many", 2)])).await.expect("added");
    assert_eq!(closed(counts).await, []);
}

/// Returns the names over the threshold once the period is over.
async fn closed(counts: &mut dyn SharedCounts) -> Vec<(Vec<u8>, u64)> {
    let terms = PeriodTerms {
        period: MOMENT,
        lease: HOUR,
        threshold: 3,
    };
    loop {
        if let PeriodState::Closing { over } = counts.close(terms).await.expect("asked") {
            return over;
        }
    }
}

fn texts(members: &[Vec<u8>]) -> Vec<String> {
    let members = members.iter();
    let mut texts: Vec<_> = members
        .map(|it| String::from_utf8_lossy(it).into_owned())
        .collect();
    texts.sort();
    texts.dedup();
    texts
}
