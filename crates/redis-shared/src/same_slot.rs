//! Names of keys in the slot of another key, so that one script may access both.

use tidegate_redis_client::slot;

/// A number above this is never needed to hit a slot: six digits reach each of them several times.
const NUMBERS: u32 = 1_000_000;

/// A key of the same slot as `key`, with `suffix` at its end: what belongs to `key` is kept there.
///
/// A key with a hash tag keeps it; one without becomes the tag. If that is impossible, because the key
/// contains a closing brace, the tag is a number of the same slot.
///
/// # Examples
///
/// ```
/// use tidegate_redis_client::slot;
/// use tidegate_redis_shared::key_in_same_slot;
///
/// assert_eq!(key_in_same_slot(b"Blacklist", ":until"), b"{Blacklist}:until");
/// assert_eq!(key_in_same_slot(b"{shop}Blacklist", ":until"), b"{shop}Blacklist:until");
/// assert_eq!(slot(&key_in_same_slot(b"odd}name", ":until")), slot(b"odd}name"));
/// ```
pub fn key_in_same_slot(key: &[u8], suffix: &str) -> Vec<u8> {
    if has_tag(key) {
        return [key, suffix.as_bytes()].concat();
    }
    let wrapped = [b"{", key, b"}", suffix.as_bytes()].concat();
    // A closing brace within would end the tag early; an empty tag is none.
    if !key.is_empty() && !key.contains(&b'}') {
        return wrapped;
    }
    let here = slot(key);
    let leads_here = |number: &u32| slot(number.to_string().as_bytes()) == here;
    match (0..NUMBERS).find(leads_here) {
        Some(number) => {
            let tag = format!("{{{number}}}");
            [tag.as_bytes(), key, suffix.as_bytes()].concat()
        }
        // Not reached. In a Cluster the server would say that the keys are apart.
        None => wrapped,
    }
}

/// Returns true if there is text between the first `{` and the next `}`.
fn has_tag(key: &[u8]) -> bool {
    let mut behind = key.splitn(2, |byte| *byte == b'{').skip(1);
    let Some(behind) = behind.next() else {
        return false;
    };
    behind.contains(&b'}') && behind.first() != Some(&b'}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegate_redis_client::SLOTS;

    fn named(key: &str) -> String {
        String::from_utf8(key_in_same_slot(key.as_bytes(), ":until")).unwrap()
    }

    #[test]
    fn a_key_becomes_the_tag_unless_it_has_one() {
        assert_eq!(named("BlacklistIPsSet"), "{BlacklistIPsSet}:until");
        assert_eq!(named("{a}"), "{a}:until");
        assert_eq!(named("x{a}y{b}"), "x{a}y{b}:until");
        assert_eq!(named("x{{a}}"), "x{{a}}:until");
        assert_eq!(named("open{brace"), "{open{brace}:until");
    }

    #[test]
    fn a_key_unusable_as_a_tag_gets_a_tag_of_its_slot() {
        for key in ["", "a}b", "}", "{}", "foo{}{bar}", "}{", "}{a", "a}b{c"] {
            let name = named(key);
            assert_eq!(slot(name.as_bytes()), slot(key.as_bytes()), "{name}");
            assert!(name.ends_with(&format!("}}{key}:until")), "{name}");
        }
    }

    #[test]
    fn every_slot_has_a_number_that_leads_there() {
        let mut reached = vec![false; usize::from(SLOTS)];
        for number in 0..NUMBERS {
            reached[usize::from(slot(number.to_string().as_bytes()))] = true;
        }
        assert!(reached.iter().all(|it| *it));
    }

    proptest! {
        #[test]
        fn companion_keys_share_a_slot(key in "[{}ab]{0,12}", suffix in "[:{}a-z]{1,8}") {
            prop_assert_eq!(slot(&key_in_same_slot(key.as_bytes(), &suffix)), slot(key.as_bytes()));
        }
    }
}
