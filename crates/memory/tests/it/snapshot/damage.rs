//! Bytes that are no whole, unchanged snapshot of this format: none is restored, and none panics.

use super::{store, write};
use crate::shop::{START, log, name, narrow, take, wide, window};
use proptest::prelude::*;
use tidegate_core::{ManualClock, Store};
use tidegate_memory::MemoryStore;
use tidegate_memory::snapshot::SnapshotError;

/// A small snapshot that has blocks of all kinds.
fn sample() -> Vec<u8> {
    let (store, _clock) = store(1);
    let state = store.shared_state().unwrap();
    let sets = state.sets().unwrap();
    super::ready(sets.add("bans", &[b"10.0.0.1"], None));
    let map = tidegate_core::shared_state::CountMap {
        name: "counts".to_owned(),
        names_max: 10,
        lasts: None,
    };
    super::ready(
        state
            .counts(&map)
            .unwrap()
            .add(&[(b"10.0.0.1".to_vec(), 1)]),
    );
    for quota in [narrow(3), wide(3), window(3), log(3)] {
        take(&store, "api", 1, &quota);
    }
    write(&store).0
}

fn error_of(bytes: &[u8]) -> Option<SnapshotError> {
    let builder = MemoryStore::builder().max_keys(1);
    let builder = builder.clock(ManualClock::at(START));
    builder
        .restore(&mut &*bytes)
        .err()
        .map(|failure| failure.error)
}

#[test]
fn a_snapshot_cut_anywhere_is_rejected() {
    let bytes = sample();
    assert!(error_of(&bytes).is_none());
    for length in 0..bytes.len() {
        let error = error_of(&bytes[..length]).unwrap();
        let is_foreign = length < 8;
        assert_eq!(
            matches!(error, SnapshotError::Foreign),
            is_foreign,
            "{length}: {error}"
        );
    }
    let longer = [&bytes[..], b"\0"].concat();
    let error = error_of(&longer).unwrap();
    assert!(
        error.to_string().contains("bytes follow its end"),
        "{error}"
    );
}

#[test]
fn every_bit_counts() {
    let mut bytes = sample();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            assert!(error_of(&bytes).is_some(), "bit {bit} of byte {at}");
            bytes[at] ^= 1 << bit;
        }
    }
    assert!(error_of(&bytes).is_none());
}

#[test]
fn other_files_and_later_versions_are_recognized() {
    assert!(matches!(error_of(b""), Some(SnapshotError::Foreign)));
    assert!(matches!(
        error_of(b"policies: []\n"),
        Some(SnapshotError::Foreign)
    ));
    let mut later = sample();
    later[8] = 2;
    let error = error_of(&later).unwrap();
    assert!(matches!(error, SnapshotError::Version { found: 2 }));
    assert_eq!(
        error.to_string(),
        "its format is version 2, and this program reads version 1"
    );
    // A tool that treats files as text has changed the end of the line.
    let text = [b"tgsnap\n".as_slice(), &sample()[8..]].concat();
    assert!(matches!(error_of(&text), Some(SnapshotError::Foreign)));
}

/// Blocks of two snapshots of one store do not combine.
#[test]
fn blocks_of_another_snapshot_are_rejected() {
    let (store, clock) = store(100);
    for subject in 0..50 {
        take(&store, &name("api", subject), subject, &narrow(3));
    }
    let one = write(&store).0;
    clock.advance_micros(1_000);
    let other = write(&store).0;
    assert_eq!(one.len(), other.len());
    for cut in [56 + 4, 100, one.len() / 2, one.len() - 30] {
        let mixed = [&one[..cut], &other[cut..]].concat();
        assert!(
            mixed == one || mixed == other || error_of(&mixed).is_some(),
            "{cut}"
        );
    }
}

proptest! {
    #[test]
    fn whatever_the_bytes_are_reading_ends(
        head in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let sample = sample();
        let start = if head { &sample[..60 + 8] } else { &[] };
        let bytes = [start, &bytes].concat();
        prop_assert!(error_of(&bytes).is_some());
    }

    #[test]
    fn bytes_changed_in_many_places_are_rejected(
        changes in prop::collection::btree_map(any::<prop::sample::Index>().prop_map(|at| at.index(usize::MAX)), 1..=255_u8, 1..20),
    ) {
        let sample = sample();
        let mut bytes = sample.clone();
        for (at, change) in changes {
            let at = at % bytes.len();
            bytes[at] ^= change;
        }
        prop_assert!(bytes == sample || error_of(&bytes).is_some());
    }
}
