use super::mark::part_of;
use super::{DigestFilter, Marks, TEXT_BYTES_MAX, TextDigest};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn mark(text: &str) -> TextDigest {
    TextDigest::of(text).expect("it is short enough")
}

/// Texts that are hard to distinguish: with few letters, and with zeros at their ends.
fn text() -> impl Strategy<Value = String> {
    let alike = prop::collection::vec(prop::sample::select(vec!['\0', 'a', 'b']), 0..20);
    let long = ("[a-c]", 0..TEXT_BYTES_MAX).prop_map(|(letter, times)| letter.repeat(times));
    prop_oneof![
        3 => alike.prop_map(String::from_iter),
        1 => "\\PC{0,40}",
        1 => long,
    ]
}

proptest! {
    #[test]
    fn equal_texts_have_equal_digests(one in text(), other in text()) {
        prop_assert_eq!(mark(&one) == mark(&other), one == other);
        prop_assert_eq!(mark(&one), mark(&one.clone()));
    }

    #[test]
    fn a_digest_table_finds_the_same_as_a_map(
        entries in prop::collection::vec((text(), 0..u32::MAX), 0..200),
        strangers in prop::collection::vec(text(), 0..50),
        room in 0..200_usize,
    ) {
        let mut map: BTreeMap<String, u32> = BTreeMap::new();
        let mut table = Marks::with_room(room);
        for (text, number) in &entries {
            if table.room() == 0 {
                table.resize(table.len() * 2 + 1);
            }
            let is_new = !map.contains_key(text);
            prop_assert_eq!(table.add(mark(text), *number).is_some(), is_new);
            map.entry(text.clone()).or_insert(*number);
        }
        for _ in 0..2 {
            prop_assert_eq!(table.len(), map.len());
            prop_assert_eq!(table.iter().count(), map.len());
            for text in entries.iter().map(|(text, _)| text).chain(&strangers) {
                let found = table.find(mark(text)).map(|place| place.number);
                prop_assert_eq!(found, map.get(text).copied());
            }
            // Repeat with no more room than they need.
            table.resize(0);
        }
    }

    #[test]
    fn a_filter_accepts_all_of_its_members(
        texts in prop::collection::hash_set(text(), 0..200),
    ) {
        let filter = DigestFilter::of(texts.iter().map(|text| mark(text)), texts.len());
        prop_assert!(texts.iter().all(|text| filter.may_have(mark(text))));
    }
}

#[test]
fn every_slot_of_a_table_holds_one_valid_digest() {
    let mut table = Marks::with_room(1_000);
    let mut taken = vec![false; table.places()];
    for nth in 0..1_000_u32 {
        let at = table.add(mark(&nth.to_string()), nth).unwrap();
        assert!(!std::mem::replace(&mut taken[at], true));
        let place = table.find(mark(&nth.to_string())).unwrap();
        assert_eq!((place.at, place.number), (at, nth));
    }
}

#[test]
fn a_table_accepts_digests_up_to_its_capacity() {
    for room in 0..50 {
        let mut table = Marks::with_room(room);
        let most = table.room();
        assert!(most >= room, "{room}");
        let mut taken = 0;
        while table.add(mark(&taken.to_string()), 0).is_some() {
            taken += 1;
        }
        assert_eq!(taken, most);
        // A search for an absent digest still ends.
        assert!(table.find(mark("stranger")).is_none());
    }
    assert!(Marks::default().find(mark("")).is_none());
    assert!(
        Marks::with_room(1)
            .add(mark("nobody's"), u32::MAX)
            .is_none()
    );
}

#[test]
fn consecutive_texts_fill_a_table_evenly() {
    let ids: [fn(u32) -> String; 3] = [
        |nth| format!("project-{nth:08}"),
        |nth| format!("{nth:024x}"),
        |nth| nth.to_string(),
    ];
    for id in ids {
        let mut table = Marks::with_room(100_000);
        let lines = table.places() / 4;
        let marks = (0..100_000).map(|nth| mark(&id(nth)));
        let at_home = marks.filter(|mark| {
            let at = table.add(*mark, 0).unwrap();
            at / 4 == part_of(mark.spread(), lines)
        });
        // For random digests, about 90 600 are in the line that they select.
        let count = at_home.count();
        assert!(count > 89_000, "{count}");
    }
}

#[test]
fn a_filter_is_small_with_few_false_positives() {
    let members = (0..100_000).map(|nth| mark(&format!("member-{nth}")));
    let filter = DigestFilter::of(members, 100_000);
    let strangers = (0..100_000).map(|nth| mark(&format!("stranger-{nth}")));
    let passed = strangers.filter(|mark| filter.may_have(*mark)).count();
    assert!(passed < 4_000, "{passed}");
    assert!(filter.bytes() <= 100_000 + 32);
    assert!(!DigestFilter::default().may_have(mark("")));
}

#[test]
fn an_overlong_text_has_no_digest() {
    assert!(TextDigest::of(&"x".repeat(TEXT_BYTES_MAX)).is_some());
    assert!(TextDigest::of(&"x".repeat(TEXT_BYTES_MAX + 1)).is_none());
}
