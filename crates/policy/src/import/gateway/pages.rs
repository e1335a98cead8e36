//! Whether all that there is was listed: the admin service answers in pages.

use super::items::{self, ItemKind};
use crate::config::{ConfigFault, ConfigValue, NodeKind};
use crate::import::SourceFile;
use crate::import::document::{ImportErrors, ImportedFile, line};
use std::collections::BTreeMap;

/// How many there are in all, by the word of a page.
#[derive(Debug)]
pub(super) struct Total {
    count: u64,
    place: (String, usize),
}

/// What was listed so far.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// By what it is; of a page without items nobody knows.
    listed: Vec<Listed>,
    /// Where each of them stands first.
    seen: BTreeMap<(ItemKind, String), (String, usize)>,
}

#[derive(Debug)]
struct Listed {
    kind: Option<ItemKind>,
    count: usize,
    /// The largest that any page has told.
    total: Option<Total>,
}

/// The total that a page tells.
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
    /// Takes note of a page, and of what is on it that was there before: whoever gives one page twice
    /// has another in mind, and counting alone would miss it.
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
            return self.listed.push(Listed { kind, count, total });
        };
        known.count = known.count.saturating_add(count);
        let told = |total: &Option<Total>| total.as_ref().map(|it| it.count);
        if told(&total) > told(&known.total) {
            known.total = total;
        }
    }

    /// Whether an item is there for the first time. It is an error that it is not.
    fn is_new(&mut self, document: &mut ImportedFile<'_>, item: &ConfigValue<'_>) -> bool {
        let kind = items::kind(item);
        let Some(id) = items::id(item) else {
            // Whoever reads it says that it needs one.
            return true;
        };
        let here = (document.file().to_owned(), line(item.node.place));
        let Some((file, line)) = self.seen.get(&(kind, id.to_owned())) else {
            self.seen.insert((kind, id.to_owned()), here);
            return true;
        };
        let fault = ConfigFault::new(format!(
            "{} {} is there already",
            kind.one(),
            ConfigFault::quote(id)
        ));
        let help = format!(
            "the first is in {file}, line {line}; was a page given twice, in place of another?"
        );
        document.error(item.spot(), fault.help(help));
        false
    }

    /// As many are there as there are.
    pub(super) fn check(&self, wrong: &mut ImportErrors) {
        for Listed { kind, count, total } in &self.listed {
            // A page behind the last has none, and whose it is the others tell.
            let of_all = || self.listed.iter().map(|it| it.count).sum();
            let listed = kind.map_or_else(of_all, |_| *count);
            let listed = u64::try_from(listed).unwrap_or(u64::MAX);
            let Some(total) = total.as_ref().filter(|total| total.count > listed) else {
                continue;
            };
            let what = kind.map_or("items", ItemKind::name);
            let fault = ConfigFault::new(format!(
                "there are {} {what}, and {count} of them are here",
                total.count
            ));
            let help = "list them with `?limit=` large enough, or translate all pages together";
            let nowhere = SourceFile {
                name: total.place.0.clone(),
                text: String::new(),
            };
            ImportedFile::complain(&nowhere, total.place.1, fault.help(help), wrong);
        }
    }
}
