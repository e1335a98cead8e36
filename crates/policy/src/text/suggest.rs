//! "Did you mean …?"

/// The longest word that is compared, in characters.
const LENGTH_MAX: usize = 40;

/// Returns the candidate that is closest to `word`, if one is close enough.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word)?;
    let most = (word.len() / 3).max(1);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(&word, &plain(candidate)?), candidate)))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the letters in lower case, with `_` and blanks as dashes; `None` if the word is too long.
fn plain(word: &str) -> Option<Vec<char>> {
    let plain: Vec<char> = word
        .chars()
        .take(LENGTH_MAX.saturating_add(1))
        .map(|letter| match letter {
            '_' | ' ' => '-',
            other => other.to_ascii_lowercase(),
        })
        .collect();
    (plain.len() <= LENGTH_MAX).then_some(plain)
}

/// Returns the number of letters to add, drop, change or swap with a neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, from) in a.iter().enumerate() {
        let mut current = vec![row.saturating_add(1)];
        for (column, to) in b.iter().enumerate() {
            let at =
                |cells: &[usize], index: usize| cells.get(index).copied().unwrap_or(usize::MAX);
            let changed = at(&above, column).saturating_add(usize::from(from != to));
            let dropped = at(&above, column.saturating_add(1)).saturating_add(1);
            let added = at(&current, column).saturating_add(1);
            let swapped = match (row.checked_sub(1), column.checked_sub(1)) {
                (Some(r), Some(c)) if a.get(r) == Some(to) && b.get(c) == Some(from) => {
                    at(&before, c).saturating_add(1)
                }
                _ => usize::MAX,
            };
            current.push(changed.min(dropped).min(added).min(swapped));
        }
        before = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use crate::text::closest;

    #[test]
    fn suggestions_cover_typos_and_nothing_else() {
        let words = [
            "algorithm",
            "align",
            "bands",
            "key",
            "local_share",
            "mode",
            "name",
        ];
        for (word, expected) in [
            ("algoritm", Some("algorithm")),
            ("Algorithm", Some("algorithm")),
            ("algorihtm", Some("algorithm")),
            ("local-share", Some("local_share")),
            ("localShare", Some("local_share")),
            ("band", Some("bands")),
            ("kye", Some("key")),
            ("nmae", Some("name")),
            ("quota", None),
            ("", None),
        ] {
            assert_eq!(closest(word, words), expected, "{word}");
        }
        assert_eq!(closest(&"k".repeat(1_000_000), words), None);
    }
}
