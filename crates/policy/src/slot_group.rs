//! Groups of limits that are decided together: in a Redis Cluster, the keys of a group share a hash slot.

use crate::key_part::{KeyPart, part_label};
use crate::limit::{Limit, MissingIdentity};
use crate::policy::{Evaluate, Policy};
pub use crate::store::SlotTag;
use crate::template::{KeyOf, band_name};
use std::collections::BTreeSet;

/// Limits whose buckets share a hash slot for any single request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotGroup {
    /// The property that they share, as text for operators: the key, the policy, or the name of a key.
    pub by: String,
    /// Their indices in [`Policy::limits`], in order. In the open layout the bands of one limit may be in
    /// several groups; the limit is then in each of them.
    pub limits: Vec<usize>,
}

impl Policy {
    /// Returns the groups of the limits that are enabled and count, in the order written. Limits that
    /// descriptors carry themselves are not included.
    pub fn groups(&self, tag: SlotTag) -> Vec<SlotGroup> {
        let mut groups: Vec<SlotGroup> = Vec::new();
        for (index, limit) in self.counting() {
            for by in self.slots(index, limit, tag) {
                match groups.iter_mut().find(|group| group.by == by) {
                    Some(group) => group.limits.push(index),
                    None => groups.push(SlotGroup {
                        by,
                        limits: vec![index],
                    }),
                }
            }
        }
        groups
    }

    /// Returns the maximum number of groups that one step can touch. Limits whose conditions exclude each
    /// other are counted as if they did not. A limit that several descriptors of a request may match, in
    /// separate buckets, counts as two, because the number of descriptors has no bound.
    pub fn groups_at_most(&self, tag: SlotTag) -> usize {
        let least = if self.spreads(tag) { 2 } else { 0 };
        let most = match self.evaluate {
            Evaluate::All => self.groups(tag).len(),
            Evaluate::First => self.groups_of_first(tag),
            // Each limit is a separate step.
            Evaluate::Each => {
                let slots = self.counting().map(|(i, it)| self.slots(i, it, tag).len());
                return slots.max().unwrap_or(0);
            }
        };
        most.max(least)
    }

    /// Returns true if the number of groups for a request depends on its descriptors: on the limits that each
    /// of them matches, or on the limits that they carry.
    pub fn spreads(&self, tag: SlotTag) -> bool {
        if self.evaluate == Evaluate::Each || !self.expects_descriptors() {
            return false;
        }
        let differs = |index, limit: &Limit| {
            limit.matches_each_descriptor()
                && self.slots_for(index, limit, tag, "") != self.slots_for(index, limit, tag, "'")
        };
        let is_apart = |limit: &Limit| limit.template.is_some();
        let brought = match tag {
            SlotTag::Subject => true,
            // Carried limits are in the slot of the policy; limits named by a template (open layout) may not
            // be.
            SlotTag::Policy => self.counting().any(|(_, limit)| is_apart(limit)),
        };
        brought || self.counting().any(|(index, limit)| differs(index, limit))
    }

    /// Returns the enabled limits that count anything, with their indices.
    fn counting(&self) -> impl Iterator<Item = (usize, &Limit)> {
        let limits = self.limits.iter().enumerate();
        limits.filter(|(_, it)| it.enabled && !it.is_unlimited())
    }

    /// Returns the maximum number of groups that one request can touch where the first limit decides.
    fn groups_of_first(&self, tag: SlotTag) -> usize {
        // An enforced limit decides alone; limits in shadow mode may precede it.
        let mut most = 0;
        let mut watched = BTreeSet::new();
        for (index, limit) in self.counting() {
            let slots = self.slots(index, limit, tag);
            if limit.matches_each_descriptor() {
                // This limit may match in addition to any limit that the request as a whole matches.
                watched.extend(slots);
                continue;
            }
            if !limit.ends_search() {
                watched.extend(slots);
                continue;
            }
            most = most.max(watched.union(&slots).count());
            if limit.conditions.is_empty() && limit.missing != MissingIdentity::Skip {
                return most;
            }
        }
        most.max(watched.len())
    }

    /// Returns true if a request can match limits in more than one group. In a Cluster, such a policy charges
    /// each group separately and refunds where another group refuses.
    pub fn spans_groups(&self, tag: SlotTag) -> bool {
        self.groups_at_most(tag) > 1
    }

    /// Returns the properties that the slots of a limit depend on: usually one.
    fn slots(&self, index: usize, limit: &Limit, tag: SlotTag) -> BTreeSet<String> {
        self.slots_for(index, limit, tag, "")
    }

    /// Like [`slots`](Self::slots), for descriptors that differ by `mark`.
    fn slots_for(&self, index: usize, limit: &Limit, tag: SlotTag, mark: &str) -> BTreeSet<String> {
        let mark = |part: &KeyPart| if part.is_of_descriptor() { mark } else { "" };
        let packed = || {
            let marks: String = limit.key.iter().map(mark).collect();
            match tag {
                SlotTag::Subject => key_as_written(&limit.key) + &marks,
                SlotTag::Policy if self.is_joined() => format!("policy {}", self.origin(index)),
                SlotTag::Policy => "the policy".to_owned(),
            }
        };
        let Some(template) = &limit.template else {
            return BTreeSet::from([packed()]);
        };
        let subject = subject_of(&limit.key, |part| {
            format!("<{}{}>", part_as_written(part), mark(part))
        });
        let names = limit.shapes().iter().map(|band| {
            template.render(&KeyOf {
                policy: self.origin(index),
                limit: &limit.name,
                subject: &subject,
                band: band_name(band),
            })
        });
        // A block is packed in every layout.
        let block = limit.block.as_ref().map(|_| packed());
        names
            .map(|name| hash_tag(&name).to_owned())
            .chain(block)
            .collect()
    }
}

/// Returns the part of a key that Redis hashes: the text in its first braces, or the whole key.
fn hash_tag(key: &str) -> &str {
    let inside = key
        .split_once('{')
        .and_then(|(_, after)| Some(after.split_once('}')?.0));
    inside.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// Formats a key as in the configuration: `ip`, `[user, header:x-tenant]`.
pub(crate) fn key_as_written(key: &[KeyPart]) -> String {
    match key {
        [] => "global".to_owned(),
        [part] => part_as_written(part),
        parts => {
            let parts: Vec<String> = parts.iter().map(part_as_written).collect();
            format!("[{}]", parts.join(", "))
        }
    }
}

/// Formats a part of a key as in the configuration.
pub fn part_as_written(part: &KeyPart) -> String {
    match part {
        KeyPart::Header(name) => format!("header:{name}"),
        KeyPart::Attr(name) => format!("attr:{name}"),
        KeyPart::DescriptorEntry { name, nth: None } => format!("descriptor:{name}"),
        KeyPart::DescriptorEntry {
            name,
            nth: Some(nth),
        } => format!("descriptor:{name}#{nth}"),
        part => part_label(part),
    }
}

/// Formats a subject with these values, in the matcher's format.
pub fn subject_of(key: &[KeyPart], value: impl Fn(&KeyPart) -> String) -> String {
    let parts = key.iter().map(|part| match part {
        KeyPart::Global => part_label(part),
        part => format!("{}:{}", part_label(part), value(part)),
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        return part_label(&KeyPart::Global);
    }
    parts.join(",")
}
