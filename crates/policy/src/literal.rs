//! Characters that may appear unescaped in the keys of a template (`store.redis.key_names: literal`) without making
//! the keys of two buckets equal.

use crate::limit::Limit;
use crate::matching::bucket_scope;
use crate::slot_group::subject_of;
use crate::template::{KeyOf, TemplatePiece, band_name};
use crate::{KeyPart, Policy};
use std::collections::BTreeMap;
use tidegate_core::OnChange;

/// A placeholder for any value. No template contains it.
const VALUE: char = '\0';

/// All keys of one band of a limit: the text before the first value, and the text after the last.
struct LiteralKeys {
    scope: String,
    before: String,
    /// `None` where it varies.
    behind: Option<String>,
}

/// Returns the characters for each limit with a template, by the scope that [`bucket_scope`] makes of the
/// names of policy and limit. A key with one value may have all visible characters except `%`, `{` and `}`. A
/// key with several values may not have their separators. Keys of whole descriptors have none. The set is
/// also empty where the keys of another limit or band could become equal. A `#` or `~` at the start of a
/// value is not decided here.
pub fn literal_characters(policies: &[Policy]) -> BTreeMap<String, String> {
    let mut characters = BTreeMap::new();
    let mut all = Vec::new();
    for policy in policies.iter().filter(|policy| !policy.is_joined()) {
        for limit in &policy.limits {
            if limit.template.is_some() {
                let scope = bucket_scope(&policy.name, &limit.name);
                all.extend(keys(&policy.name, limit, &scope));
                characters.insert(scope, characters_of(limit));
            }
        }
    }
    all.sort_by(|one, other| one.before.cmp(&other.before));
    for (nth, one) in all.iter().enumerate() {
        let others = all.iter().skip(nth.saturating_add(1));
        let alike = others.take_while(|other| other.before.starts_with(&one.before));
        for other in alike.filter(|other| one.may_end_as(other)) {
            characters.insert(one.scope.clone(), String::new());
            characters.insert(other.scope.clone(), String::new());
        }
    }
    characters
}

impl LiteralKeys {
    fn may_end_as(&self, other: &Self) -> bool {
        match (&self.behind, &other.behind) {
            (Some(one), Some(other)) => one.ends_with(other) || other.ends_with(one),
            _ => true,
        }
    }
}

fn keys(policy: &str, limit: &Limit, scope: &str) -> Vec<LiteralKeys> {
    let subject = subject_of(&limit.key, |_| VALUE.to_string());
    let bands = limit.shapes().iter().filter_map(|band| {
        let name = limit.template.as_ref()?.render(&KeyOf {
            policy,
            limit: &limit.name,
            subject: &subject,
            band: band_name(band),
        });
        let (before, rest) = name.split_once(VALUE).unwrap_or((&name, &name));
        let behind = rest.rsplit_once(VALUE).map_or(rest, |(_, behind)| behind);
        let varies = limit.on_change() == OnChange::Reset;
        Some(LiteralKeys {
            scope: scope.to_owned(),
            before: before.to_owned(),
            behind: (!varies).then(|| behind.to_owned()),
        })
    });
    bands.collect()
}

fn characters_of(limit: &Limit) -> String {
    if limit.key.contains(&KeyPart::Descriptor) {
        return String::new();
    }
    let pieces = limit.template.as_ref().map_or(&[][..], |it| it.pieces());
    let separates = |c: char| {
        let in_text =
            |piece: &TemplatePiece| matches!(piece, TemplatePiece::Text(text) if text.contains(c));
        matches!(c, ':' | ',') || pieces.iter().any(in_text)
    };
    let values = limit.key.iter().filter(|part| **part != KeyPart::Global);
    let is_one = values.count() == 1;
    ('!'..='~')
        .filter(|c| !matches!(c, '%' | '{' | '}') && (is_one || !separates(*c)))
        .collect()
}
