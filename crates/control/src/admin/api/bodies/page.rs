//! Pagination of long lists.

use crate::admin::api::query::Query;
use crate::admin::api::routing::route::{Param, ParamKind};
use schemars::JsonSchema;
use serde::Serialize;

/// The index of a page's first item.
pub(crate) const OFFSET: Param = Param {
    name: "offset",
    kind: ParamKind::Whole(0, 1_000_000_000, 0),
    about: "The index of the first item. Default: 0.",
};

/// The maximum number of items on a page.
pub(crate) const LIMIT: Param = Param {
    name: "limit",
    kind: ParamKind::Whole(1, 500, 50),
    about: "The maximum number of items. Default: 50.",
};

/// The prefix of the names to list.
pub(crate) const NAME: Param = Param {
    name: "name",
    kind: ParamKind::Text,
    about: "Only items whose names start with this.",
};

/// The source of the items to list.
pub(crate) const SOURCE: Param = Param {
    name: "source",
    kind: ParamKind::Text,
    about: "Only items of this source.",
};

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub(crate) struct ListPage<T> {
    /// The items of this page.
    items: Vec<T>,
    /// The number of items of all pages.
    total: usize,
    /// The index of the first item of this page.
    offset: usize,
    /// The maximum number of items of a page.
    limit: usize,
}

impl<T> ListPage<T> {
    /// Returns the requested page of `all`. Only the items on it are made.
    pub(crate) fn of<S>(all: &[S], query: &Query, item: impl Fn(&S) -> T) -> Self {
        let (offset, limit) = (query.whole("offset"), query.whole("limit"));
        Self {
            items: all.iter().skip(offset).take(limit).map(item).collect(),
            total: all.len(),
            offset,
            limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_continue_until_the_last_one() {
        static PARAMS: [Param; 2] = [OFFSET, LIMIT];
        let items: Vec<u32> = (0..7).collect();
        let page = |text: &str| {
            let query = Query::read(Some(text), &PARAMS).unwrap();
            ListPage::of(&items, &query, |item| *item)
        };
        assert_eq!(page("limit=3").items, [0, 1, 2]);
        assert_eq!(page("limit=3&offset=6").items, [6]);
        assert!(page("offset=7").items.is_empty());
        assert_eq!(page("offset=7").total, 7);
    }
}
