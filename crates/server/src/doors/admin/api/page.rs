//! Pagination of long lists.

use super::query::Query;
use super::route::{Param, ParamKind};
use serde_json::{Value, json};

/// The index of a page's first item.
pub(super) const OFFSET: Param = Param {
    name: "offset",
    kind: ParamKind::Whole(0, 1_000_000_000, 0),
    about: "How many to pass over; none unless told.",
};

/// The maximum number of items on a page.
pub(super) const LIMIT: Param = Param {
    name: "limit",
    kind: ParamKind::Whole(1, 500, 50),
    about: "How many to tell; 50 unless told.",
};

/// The prefix of the names to list.
pub(super) const NAME: Param = Param {
    name: "name",
    kind: ParamKind::Text,
    about: "Only those whose names begin so.",
};

/// The source of the items to list.
pub(super) const SOURCE: Param = Param {
    name: "source",
    kind: ParamKind::Text,
    about: "Only those of this source.",
};

/// Returns the requested page of `items`. Only the items on it are serialized.
pub(super) fn of<T>(items: &[T], query: &Query, write: impl Fn(&T) -> Value) -> Value {
    let (offset, limit) = (query.whole("offset"), query.whole("limit"));
    let shown = items.iter().skip(offset).take(limit).map(write);
    json!({
        "items": shown.collect::<Vec<_>>(),
        "total": items.len(),
        "offset": offset,
        "limit": limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_to_the_end() {
        static PARAMS: [Param; 2] = [OFFSET, LIMIT];
        let items: Vec<u32> = (0..7).collect();
        let page = |text: &str| {
            let query = Query::read(Some(text), &PARAMS).unwrap();
            of(&items, &query, |item| json!(item))
        };
        assert_eq!(page("limit=3")["items"], json!([0, 1, 2]));
        assert_eq!(page("limit=3&offset=6")["items"], json!([6]));
        assert_eq!(page("offset=7")["items"], json!([]));
        assert_eq!(page("offset=7")["total"], 7);
    }
}
