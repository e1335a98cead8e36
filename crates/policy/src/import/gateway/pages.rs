//! Whether all that there is was listed: the admin service answers in pages.

use super::items::ItemKind;
use crate::config::{Fault, Kind, Value};
use crate::import::SourceFile;
use crate::import::document::{Document, Wrong, line};

/// How many there are in all, by the word of a page.
#[derive(Debug)]
pub(super) struct Total {
    count: u64,
    place: (String, usize),
}

/// What was listed so far, by what it is; of a page without items nobody knows.
#[derive(Debug, Default)]
pub(super) struct Pages(Vec<Listed>);

#[derive(Debug)]
struct Listed {
    kind: Option<ItemKind>,
    count: usize,
    /// The largest that any page has told.
    total: Option<Total>,
}

/// The total that a page tells.
pub(super) fn total(document: &mut Document<'_>, page: &Value<'_>) -> Option<Total> {
    let Kind::Map(entries) = &page.node.kind else {
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
    /// Takes note of a page.
    pub(super) fn add(&mut self, kind: Option<ItemKind>, count: usize, total: Option<Total>) {
        let Some(known) = self.0.iter_mut().find(|it| it.kind == kind) else {
            return self.0.push(Listed { kind, count, total });
        };
        known.count = known.count.saturating_add(count);
        let told = |total: &Option<Total>| total.as_ref().map(|it| it.count);
        if told(&total) > told(&known.total) {
            known.total = total;
        }
    }

    /// As many are there as there are.
    pub(super) fn check(&self, wrong: &mut Wrong) {
        for Listed { kind, count, total } in &self.0 {
            // A page behind the last has none, and whose it is the others tell.
            let of_all = || self.0.iter().map(|it| it.count).sum();
            let listed = kind.map_or_else(of_all, |_| *count);
            let listed = u64::try_from(listed).unwrap_or(u64::MAX);
            let Some(total) = total.as_ref().filter(|total| total.count > listed) else {
                continue;
            };
            let what = kind.map_or("items", ItemKind::name);
            let fault = Fault::new(format!(
                "there are {} {what}, and {count} of them are here",
                total.count
            ));
            let help = "list them with `?limit=` large enough, or translate all pages together";
            let nowhere = SourceFile {
                name: total.place.0.clone(),
                text: String::new(),
            };
            Document::complain(&nowhere, total.place.1, fault.help(help), wrong);
        }
    }
}
