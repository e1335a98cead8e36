//! Counting in maps that other programs read as well.

use super::kit::{HOUR, ROOMY, TestRedis, add, batch, run, top};
use std::time::Duration;
use tidegate_redis_client::CallEffect;
use tidegate_redis_shared::{Census, CensusLimits, CensusMap, CountBatch, MapPlacement};

everywhere! {
    requested_counts_are_returned_in_order
    counts_add_up_in_both_maps
    values_set_by_hand_continue_to_count
    a_batch_sent_twice_counts_once
    a_large_batch_is_sent_in_pieces
    a_full_map_counts_new_names_in_other
    a_non_numeric_value_is_kept_and_counted_in_other
    numbers_too_large_are_no_error
    the_all_time_map_restarts_when_due
    a_map_of_another_type_is_an_error_until_fixed
    marked_batches_expire
    the_largest_counts_are_found_among_many
}

fn own(sum: u64) -> MapPlacement {
    MapPlacement {
        own: sum,
        ..MapPlacement::default()
    }
}

fn counts_add_up_in_both_maps(ground: &TestRedis) {
    let (mut first, mut second) = (ground.census(ROOMY), ground.census(ROOMY));
    let added = add(&mut first, &[("a", 3), ("b", 1), ("a", 2), ("none", 0)]);
    assert_eq!((added.period, added.total), (own(6), own(6)));
    add(&mut second, &[("a", 10)]);
    add(&mut first, &[]);
    for map in [CensusMap::Period, CensusMap::Total] {
        let expected = [("a".to_owned(), 15), ("b".to_owned(), 1)];
        assert_eq!(top(&first, map, 10), expected);
    }
}

fn values_set_by_hand_continue_to_count(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    let names = ground.names();
    ground.by_hand(&["HSET", &names.total, "192.168.1.100", "15000"]);
    ground.by_hand(&["HSET", &names.period, "192.168.1.100", "5000"]);
    add(&mut census, &[("192.168.1.100", 7)]);
    let value = |key: &str| ground.text(&["HGET", key, "192.168.1.100"]);
    assert_eq!(value(&names.total), "15007");
    assert_eq!(value(&names.period), "5007");
}

fn a_batch_sent_twice_counts_once(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    let mut batch = batch(&[("a", 3), ("b", 4)]);
    let added = run(census.add(&mut batch)).unwrap();
    assert_eq!(run(census.add(&mut batch)).unwrap(), added);
    assert_eq!(ground.sum(&ground.names().period), 7);
    assert_eq!(ground.sum(&ground.names().total), 7);
}

fn a_large_batch_is_sent_in_pieces(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    let counts = (0..2_500_u64).map(|i| (format!("name-{i}").into_bytes(), i + 1));
    let mut batch = CountBatch::new(counts.collect());
    let sum = 2_500 * 2_501 / 2;
    assert_eq!(batch.sum(), sum);
    let added = run(census.add(&mut batch)).unwrap();
    assert_eq!((added.period, added.total), (own(sum), own(sum)));
    let names = ground.names();
    for key in [&names.period, &names.total] {
        assert_eq!(ground.int(&["HLEN", key]), 2_500);
        assert_eq!(ground.sum(key), sum);
    }
}

fn a_full_map_counts_new_names_in_other(ground: &TestRedis) {
    let limits = CensusLimits {
        period_max: 2,
        total_max: 3,
        ..ROOMY
    };
    let mut census = ground.census(limits);
    let names = ground.names();
    let added = add(&mut census, &[("a", 1), ("b", 2), ("c", 4), ("d", 8)]);
    assert_eq!((added.period.own, added.period.other), (3, 12));
    assert_eq!((added.total.own, added.total.other), (7, 8));
    // A client with a field keeps it; `other` is not one of the two.
    let added = add(&mut census, &[("e", 16), ("b", 32), ("other", 64)]);
    assert_eq!((added.period.own, added.period.other), (32, 80));
    assert_eq!(ground.text(&["HGET", &names.period, "b"]), "34");
    assert_eq!(ground.text(&["HGET", &names.period, "other"]), "92");
    assert_eq!(ground.int(&["HLEN", &names.period]), 3);
    assert_eq!(ground.text(&["HGET", &names.total, "other"]), "88");
    assert_eq!(ground.int(&["HLEN", &names.total]), 4);
    let others = top(&census, CensusMap::Period, 10);
    assert_eq!(others, [("b".to_owned(), 34), ("a".to_owned(), 1)]);
}

fn a_non_numeric_value_is_kept_and_counted_in_other(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    let names = ground.names();
    ground.by_hand(&["HSET", &names.period, "a", "many", "b", "1.5", "c", "7"]);
    let added = add(&mut census, &[("a", 1), ("b", 2), ("c", 4)]);
    assert_eq!((added.period.own, added.period.other), (4, 3));
    assert_eq!(added.total, own(7));
    for (name, value) in [("a", "many"), ("b", "1.5"), ("c", "11"), ("other", "3")] {
        assert_eq!(ground.text(&["HGET", &names.period, name]), value, "{name}");
    }
    // Only `other` itself is left for counts without a field.
    ground.by_hand(&["HSET", &names.period, "other", "rest"]);
    let added = add(&mut census, &[("a", 5)]);
    assert_eq!((added.period.own, added.period.other), (0, 5));
    assert_eq!(ground.text(&["HGET", &names.period, "other"]), "5");
}

fn numbers_too_large_are_no_error(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    let key = ground.names().period;
    add(
        &mut census,
        &[("a", u64::MAX), ("b", 9_007_199_254_740_993)],
    );
    let value = |name: &str| ground.text(&["HGET", &key, name]);
    assert_eq!(value("a"), i64::MAX.to_string());
    assert_eq!(value("b"), "9007199254740993", "to the last digit");
    add(&mut census, &[("a", 5)]);
    assert_eq!(value("a"), i64::MAX.to_string());
    assert_eq!(value("other"), "5");
    add(&mut census, &[("a", u64::MAX), ("b", 1)]);
    assert_eq!(value("other"), i64::MAX.to_string());
    assert_eq!(value("b"), "9007199254740994");
}

fn the_all_time_map_restarts_when_due(ground: &TestRedis) {
    let lasting = |total_lasts| CensusLimits {
        total_lasts,
        ..ROOMY
    };
    let names = ground.names();
    let left = || ground.int(&["PTTL", &names.total]);
    add(&mut ground.census(lasting(Some(HOUR))), &[("a", 1)]);
    let first = left();
    assert!(first > 0 && first <= 3_600_000, "{first}");
    add(&mut ground.census(lasting(Some(HOUR * 9))), &[("a", 1)]);
    assert!(left() <= first, "only a new map gets an expiry");
    assert_eq!(ground.int(&["PTTL", &names.period]), -1);
    ground.by_hand(&["DEL", &names.total]);
    add(&mut ground.census(lasting(None)), &[("a", 1)]);
    assert_eq!(left(), -1);
    add(&mut ground.census(lasting(Some(HOUR))), &[("a", 1)]);
    assert_eq!(left(), -1, "a map that was there keeps what it has");
    ground.by_hand(&["DEL", &names.total]);
    add(
        &mut ground.census(lasting(Some(Duration::MAX))),
        &[("a", 1)],
    );
    assert!(left() > 0);
}

fn a_map_of_another_type_is_an_error_until_fixed(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    let names = ground.names();
    ground.by_hand(&["SET", &names.period, "text"]);
    let mut batch = batch(&[("a", 3)]);
    for _ in 0..2 {
        let error = run(census.add(&mut batch)).unwrap_err();
        assert_eq!(error.code(), Some("WRONGTYPE"));
        let said = error.to_string();
        assert!(said.contains(&names.period), "{said}");
        assert!(said.contains("should hold one of type hash"), "{said}");
        assert_eq!(error.class(), CallEffect::Executed);
    }
    assert_eq!(ground.sum(&names.total), 3, "the other map is added to");
    let top = run(census.top(CensusMap::Period, 3)).unwrap_err();
    assert!(top.to_string().contains("does not hold a hash"), "{top}");
    ground.by_hand(&["DEL", &names.period]);
    // Later batches first: counts that were certainly not added are not in doubt.
    add(&mut census, &[("b", 5)]);
    let added = run(census.add(&mut batch)).unwrap();
    assert_eq!((added.period, added.total), (own(3), own(3)));
    assert_eq!(
        (ground.sum(&names.period), ground.sum(&names.total)),
        (8, 8)
    );
}

fn marked_batches_expire(ground: &TestRedis) {
    add(&mut ground.census(ROOMY), &[("a", 1)]);
    let mut scan = ground
        .connection
        .scan(format!("*{}*:batch:*", ground.name("")), 1_000);
    let mut markers = Vec::new();
    while let Some(keys) = run(scan.next_batch()).unwrap() {
        markers.extend(keys);
    }
    assert_eq!(markers.len(), 2, "{markers:?}");
    for marker in markers {
        let marker = String::from_utf8(marker).unwrap();
        let left = ground.int(&["TTL", &marker]);
        assert!(left > 500 && left <= 600, "{marker}: {left}");
    }
}

fn the_largest_counts_are_found_among_many(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    // Many more than are kept, in a different order.
    let counts =
        (0..20_000_u64).map(|i| (format!("name-{i}").into_bytes(), i * 7_919 % 20_011 + 1));
    let mut expected: Vec<(String, u64)> = counts
        .clone()
        .map(|(name, count)| (String::from_utf8(name).unwrap(), count))
        .collect();
    expected.sort_unstable_by_key(|(_, count)| std::cmp::Reverse(*count));
    expected.truncate(25);
    run(census.add(&mut CountBatch::new(counts.collect()))).unwrap();
    let names = ground.names();
    ground.by_hand(&["HSET", &names.total, "other", "99999999", "odd", "many"]);
    assert_eq!(top(&census, CensusMap::Total, 25), expected);
    assert_eq!(top(&census, CensusMap::Total, 0), []);
    let empty = Census::new(
        ground.connection.clone(),
        &tidegate_redis_shared::CensusNames {
            period: ground.name("none"),
            total: ground.name("nothing"),
        },
        ROOMY,
    );
    assert_eq!(top(&empty, CensusMap::Period, 5), []);
}

fn requested_counts_are_returned_in_order(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    add(&mut census, &[("a", 3), ("b", 2)]);
    let total = ground.name("AllIPsMap");
    ground.by_hand(&["HSET", &total, "c", "text"]);
    let told = run(census.counts(CensusMap::Total, &["b", "nobody", "c", "a"]));
    assert_eq!(told.unwrap(), [2, 0, 0, 3]);
    let many: Vec<String> = (0..2_500).map(|nth| nth.to_string()).collect();
    let told = run(census.counts(CensusMap::Period, &many)).unwrap();
    assert_eq!(told, vec![0; 2_500]);
}
