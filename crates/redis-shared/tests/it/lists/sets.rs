//! Scans of whole sets.

use super::kit::{AGES, TestRedis, run, texts};
use tidegate_redis_client::CallError;
use tidegate_redis_shared::{LoadError, RedisSets};
use tokio::select;

everywhere! {
    members_are_added_and_removed
    a_hundred_thousand_members_are_loaded_completely_during_changes
    too_many_members_are_an_error
    a_key_of_another_type_is_an_error_that_names_it
}

fn members_are_added_and_removed(ground: &TestRedis) {
    let (sets, key) = (ground.sets(), ground.name("set"));
    let key = key.as_bytes();
    let load = || texts(run(sets.members(key, 10, AGES)).unwrap());
    assert_eq!(load(), [""; 0], "there is no such key");
    let add = |members: &[&str]| run(sets.add_members(key, members)).unwrap();
    assert_eq!(add(&["a", "b", "c"]), 3);
    assert_eq!(add(&["c", "d"]), 1);
    assert_eq!(add(&[]), 0);
    let remove = |members: &[&str]| run(sets.remove_members(key, members)).unwrap();
    assert_eq!(remove(&["a", "x"]), 1);
    assert_eq!(remove(&[]), 0);
    assert_eq!(load(), ["b", "c", "d"]);
}

fn a_hundred_thousand_members_are_loaded_completely_during_changes(ground: &TestRedis) {
    let key = ground.name("set");
    let key = key.as_bytes();
    let lasting: Vec<String> = (0..100_000).map(|i| format!("stays-{i:06}")).collect();
    let (mine, other) = (ground.sets(), RedisSets::new(ground.another()));
    assert_eq!(run(mine.add_members(key, &lasting)).unwrap(), 100_000);
    // Enough members come and go that the server's table grows and shrinks during the scan.
    let passing: Vec<String> = (0..60_000).map(|i| format!("passes-{i:06}")).collect();
    let meddle = async {
        let mut rounds = 0_u64;
        loop {
            for some in passing.chunks(5_000) {
                other.add_members(key, some).await.unwrap();
            }
            for some in passing.chunks(5_000) {
                other.remove_members(key, some).await.unwrap();
                rounds += 1;
            }
            assert!(rounds < 10_000, "the load never ends");
        }
    };
    let load = async {
        for _ in 0..3 {
            let found = mine.members(key, 200_000, AGES).await.unwrap();
            let mut found = texts(found);
            found.retain(|member| member.starts_with("stays-"));
            assert!(found == lasting, "{} of 100,000", found.len());
        }
    };
    run(async {
        select! {
            () = load => {}
            () = meddle => {}
        }
    });
}

fn too_many_members_are_an_error(ground: &TestRedis) {
    let (sets, key) = (ground.sets(), ground.name("set"));
    let members: Vec<String> = (0..3_000).map(|i| format!("member-{i}")).collect();
    run(sets.add_members(key.as_bytes(), &members)).unwrap();
    let load = |max| run(sets.members(key.as_bytes(), max, AGES));
    assert_eq!(texts(load(3_000).unwrap()).len(), 3_000);
    let error = load(2_999).unwrap_err();
    assert!(matches!(error, LoadError::TooMany { max: 2_999, .. }));
    assert!(!error.is_transient());
    let said = error.to_string();
    assert!(said.contains(&key) && said.contains("2999"), "{said}");
}

fn a_key_of_another_type_is_an_error_that_names_it(ground: &TestRedis) {
    let (sets, key) = (ground.sets(), ground.name("list"));
    ground.by_hand(&["RPUSH", &key, "a"]);
    let error = run(sets.members(key.as_bytes(), 10, AGES)).unwrap_err();
    let LoadError::Call(error) = error else {
        panic!("{error}");
    };
    let clear = |error: CallError| {
        let said = error.to_string();
        assert_eq!(error.code(), Some("WRONGTYPE"), "{said}");
        assert!(said.contains(&key) && said.contains("set"), "{said}");
        assert!(!error.is_transient());
    };
    clear(error);
    clear(run(sets.add_members(key.as_bytes(), &["a"])).unwrap_err());
    clear(run(sets.remove_members(key.as_bytes(), &["a"])).unwrap_err());
}
