//! Groups of limits that are decided together: in a Redis Cluster, the keys of a group share a hash slot.

use crate::limit::{Evaluate, KeyPart, Limit, Missing, Policy};
use crate::matching::part_label;
use crate::template::{KeyOf, band_name};
use std::collections::BTreeSet;

/// The part of a key that selects its hash slot in a Cluster (`store.tag`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotTag {
    /// The subject: keys spread over all nodes.
    #[default]
    Subject,
    /// The policy: all its keys live in one slot.
    Policy,
}

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
    pub(crate) fn spreads(&self, tag: SlotTag) -> bool {
        if self.evaluate == Evaluate::Each || !self.expects_descriptors() {
            return false;
        }
        let differs = |index, limit: &Limit| {
            limit.is_met_by_each()
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
            if limit.is_met_by_each() {
                // This limit may match in addition to any limit that the request as a whole matches.
                watched.extend(slots);
                continue;
            }
            if !limit.ends_search() {
                watched.extend(slots);
                continue;
            }
            most = most.max(watched.union(&slots).count());
            if limit.conditions.is_empty() && limit.missing != Missing::Skip {
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
pub(crate) fn part_as_written(part: &KeyPart) -> String {
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
pub(crate) fn subject_of(key: &[KeyPart], value: impl Fn(&KeyPart) -> String) -> String {
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

#[cfg(test)]
mod tests {
    use super::SlotTag;
    use crate::config::NoEnvironment;
    use crate::{Config, Policy};

    fn policy(text: &str) -> Policy {
        policy_in("layout: packed", text)
    }

    fn policy_in(store: &str, text: &str) -> Policy {
        let text = format!(
            "store: {{ url: \"redis://a,b\", {store} }}\npolicies: [{{ name: p, {text} }}]"
        );
        let config = Config::parse(&text, "x", &NoEnvironment).unwrap_or_else(|e| panic!("{e}"));
        config.policies.into_iter().next().unwrap()
    }

    #[test]
    fn the_same_key_is_one_group() {
        let policy = policy(
            "limits: [{ name: a, key: ip, rate: 1/s }, { name: b, key: user, rate: 1/s },
            { name: c, key: [ip], rate: 1/h, missing: skip }, { name: d, enabled: false, key: path, rate: 1/s }]",
        );
        let groups = policy.groups(SlotTag::Subject);
        let [ip, user] = groups.as_slice() else {
            panic!("{groups:?}")
        };
        assert_eq!(
            (ip.by.as_str(), ip.limits.as_slice()),
            ("ip", [0, 2].as_slice())
        );
        assert_eq!(
            (user.by.as_str(), user.limits.as_slice()),
            ("user", [1].as_slice())
        );
        assert!(policy.spans_groups(SlotTag::Subject));
        assert!(!policy.spans_groups(SlotTag::Policy));
        assert_eq!(policy.groups(SlotTag::Policy).len(), 1);
    }

    #[test]
    fn the_order_of_a_key_matters() {
        let policy = policy(
            "limits: [{ name: a, key: [ip, user], rate: 1/s }, { name: b, key: [user, ip], rate: 1/s }]",
        );
        assert_eq!(policy.groups_at_most(SlotTag::Subject), 2);
    }

    #[test]
    fn where_the_first_decides_only_watchers_come_along() {
        for (limits, most) in [
            (
                "{ name: a, key: ip, match: { path: /a }, rate: 1/s }, { name: b, key: user, rate: 1/s }",
                1,
            ),
            (
                "{ name: a, key: ip, mode: shadow, rate: 1/s }, { name: b, key: user, rate: 1/s }",
                2,
            ),
            (
                "{ name: a, key: ip, mode: shadow, rate: 1/s }, { name: b, key: ip, rate: 1/s }",
                1,
            ),
            (
                "{ name: b, key: user, rate: 1/s }, { name: a, key: ip, mode: shadow, rate: 1/s }",
                1,
            ),
            (
                "{ name: a, key: ip, mode: shadow, rate: 1/s }, { name: b, key: user, mode: shadow, rate: 1/s }",
                2,
            ),
            (
                "{ name: b, key: user, missing: skip, rate: 1/s }, { name: a, key: ip, mode: shadow, rate: 1/s }, { name: c, key: host, rate: 1/s }",
                2,
            ),
        ] {
            let policy = policy(&format!("evaluate: first, limits: [{limits}]"));
            assert_eq!(policy.groups_at_most(SlotTag::Subject), most, "{limits}");
        }
    }

    #[test]
    fn descriptors_may_lie_in_as_many_groups_as_there_are() {
        for (limits, subject, policy_tag) in [
            // One limit, matched by several descriptors, each in its own bucket.
            (
                "{ name: a, match: { descriptor: [u] }, key: descriptor:u, rate: 1/s }",
                true,
                false,
            ),
            // Limits that descriptors carry are separate from all configured limits.
            (
                "{ name: a, match: { descriptor: [u] }, rate: 1/s }",
                true,
                false,
            ),
            ("{ name: a, key: ip, rate: 1/s }", false, false),
        ] {
            let policy = policy(&format!("limits: [{limits}]"));
            assert_eq!(policy.spans_groups(SlotTag::Subject), subject, "{limits}");
            assert_eq!(policy.spans_groups(SlotTag::Policy), policy_tag, "{limits}");
        }
        let domain = policy("domain: d, limits: [{ name: a, key: ip, rate: 1/s }]");
        assert!(domain.spans_groups(SlotTag::Subject));
    }

    #[test]
    fn whatever_envoy_can_ask_may_be_brought_limits() {
        let text = "listen: { grpc: '127.0.0.1:1' }\npolicies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]";
        let config = Config::parse(text, "x", &NoEnvironment).unwrap();
        assert!(config.policies[0].spans_groups(SlotTag::Subject));
    }

    #[test]
    fn a_step_of_its_own_is_a_group_of_its_own() {
        let policy = policy(
            "evaluate: each, limits: [{ name: a, match: { descriptor: [u] }, key: descriptor, rate: 1/s },
            { name: b, key: user, rate: 1/s }]",
        );
        assert!(!policy.spans_groups(SlotTag::Subject));
        assert_eq!(policy.groups(SlotTag::Subject).len(), 2);
    }

    #[test]
    fn what_counts_nothing_is_in_no_group() {
        let policy = policy(
            "evaluate: first, limits: [{ name: a, match: { path: /x }, rate: unlimited }, { name: b, key: user, rate: 1/s }]",
        );
        assert_eq!(policy.groups(SlotTag::Subject).len(), 1);
        assert!(!policy.spans_groups(SlotTag::Subject));
    }

    #[test]
    fn in_the_open_layout_a_tag_holds_descriptors_together() {
        let limits =
            "limits: [{ name: a, match: { descriptor: [u] }, key: descriptor:u, rate: 1/s }]";
        let together = policy_in(
            "layout: open, template: \"x:{{{policy}}}:{limit}:{key}\"",
            limits,
        );
        assert_eq!(together.groups(SlotTag::Policy).len(), 1);
        // The limit that a descriptor carries has a packed key, which is in another slot.
        assert!(together.spans_groups(SlotTag::Policy));
    }

    #[test]
    fn in_the_open_layout_the_name_decides() {
        let bands = "bands: [{ rate: 1/s, label: s }, { rate: 1/h, label: h }]";
        let apart = policy_in(
            "layout: open",
            &format!("limits: [{{ name: a, key: ip, {bands} }}]"),
        );
        let groups = apart.groups(SlotTag::Policy);
        assert_eq!(groups[0].by, "fluxgate:p:a:<ip>:h");
        assert_eq!(groups[1].limits, [0]);
        assert!(apart.spans_groups(SlotTag::Policy));
        let together = policy_in(
            "layout: open, template: \"x:{{{key}}}:{limit}:{band}\"",
            &format!(
                "limits: [{{ name: a, key: ip, {bands} }}, {{ name: b, key: ip, rate: 1/s }}]"
            ),
        );
        assert!(!together.spans_groups(SlotTag::Subject));
    }
}
