//! Checks that no item is missing: the admin service returns its lists in pages.

use super::items::{self, ItemKind};
use crate::SourceFile;
use crate::document::{ImportErrors, ImportedFile, line};
use std::collections::BTreeMap;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{ConfigFault, NodeKind};

/// The total number of items, from a page.
#[derive(Debug)]
pub(super) struct Total {
    count: u64,
    place: (String, usize),
}

/// The items listed so far.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// The counts by kind. The kind of a page without items is unknown.
    listed: Vec<ListedItems>,
    /// The first position of each item.
    seen: BTreeMap<(ItemKind, String), (String, usize)>,
}

#[derive(Debug)]
struct ListedItems {
    kind: Option<ItemKind>,
    count: usize,
    /// The largest total of all pages.
    total: Option<Total>,
}

/// Reads the total of a page.
pub(super) fn total(document: &mut ImportedFile<'_>, page: &ConfigValue<'_>) -> Option<Total> {
    let NodeKind::Map(entries) = &page.node.kind else {
        return None;
    };
    let entry = entries.iter().find(|entry| entry.key.text == "total")?;
    let value = page.child(&entry.key, &entry.value);
    Some(Total {
        count: document.number(&value, u64::MAX)?,
        place: (document.file().to_owned(), line(value.node.place)),
    })
}

impl Pages {
    /// Adds a page. Reports items that were listed before: a page given twice means that another one is
    /// missing, which the count alone would not show.
    pub(super) fn add(
        &mut self,
        document: &mut ImportedFile<'_>,
        items: &[ConfigValue<'_>],
        total: Option<Total>,
    ) {
        let kind = items.first().map(items::kind);
        let new = items.iter().filter(|item| self.is_new(document, item));
        let count = new.count();
        let Some(known) = self.listed.iter_mut().find(|it| it.kind == kind) else {
            return self.listed.push(ListedItems { kind, count, total });
        };
        known.count = known.count.saturating_add(count);
        let count_of = |total: &Option<Total>| total.as_ref().map(|it| it.count);
        if count_of(&total) > count_of(&known.total) {
            known.total = total;
        }
    }

    /// Returns true if an item is listed for the first time, otherwise reports it.
    fn is_new(&mut self, document: &mut ImportedFile<'_>, item: &ConfigValue<'_>) -> bool {
        let kind = items::kind(item);
        let Some(id) = items::id(item) else {
            // A missing id is reported when the item is read.
            return true;
        };
        let here = (document.file().to_owned(), line(item.node.place));
        let Some((file, line)) = self.seen.get(&(kind, id.to_owned())) else {
            self.seen.insert((kind, id.to_owned()), here);
            return true;
        };
        let fault = ConfigFault::new(format!(
            "{} {} is a duplicate",
            kind.one(),
            ConfigFault::quote(id)
        ));
        let help = format!("the first is in {file}, line {line}; was a page passed twice?");
        document.error(item.spot(), fault.help(help));
        false
    }

    /// Checks that all items are listed.
    pub(super) fn check(&self, wrong: &mut ImportErrors) {
        for ListedItems { kind, count, total } in &self.listed {
            // A page after the last one has no items, so its kind is unknown. Count the items of all
            // kinds.
            let of_all = || self.listed.iter().map(|it| it.count).sum();
            let listed = kind.map_or_else(of_all, |_| *count);
            let listed = u64::try_from(listed).unwrap_or(u64::MAX);
            let Some(total) = total.as_ref().filter(|total| total.count > listed) else {
                continue;
            };
            let what = kind.map_or("items", ItemKind::name);
            let fault = ConfigFault::new(format!("found {count} of {} {what}", total.count));
            let help = "list them with a larger `?limit=`, or import all pages together";
            let nowhere = SourceFile {
                name: total.place.0.clone(),
                text: String::new(),
            };
            ImportedFile::add_error(&nowhere, total.place.1, fault.help(help), wrong);
        }
    }
}
