//! The live instances and the configuration of each, as read from the server.

use super::GONE;
use std::time::Duration;
use tidegate_core::shared_state::{Instance, InstanceConfig, Roll};
use tidegate_redis_client::CallError;
use tidegate_redis_client::protocol::{self, Value};
use tokio::time::Instant;

/// The most characters of a name that another instance wrote.
const NAME_MAX: usize = 64;
/// The most characters of a configuration's version: enough to distinguish all instances that live at the
/// same time.
pub(super) const VERSION_MAX: usize = 16;
/// The most characters of a program's version.
pub(super) const PROGRAM_MAX: usize = 32;

/// Returns true if `roll` lists this instance with `what` as its announcement.
pub(super) fn says(roll: &Roll, what: &str) -> bool {
    let this = roll.instances.iter().find(|it| it.is_this);
    let serves = this.and_then(|it| it.serves.as_ref());
    serves.is_some_and(|it| format!("{} {}", it.version, it.program) == what)
}

/// Returns `roll` as it is `passed` later, without news.
fn later(roll: &Roll, passed: Duration) -> Roll {
    let mut roll = roll.clone();
    for instance in &mut roll.instances {
        instance.heard = instance.heard.saturating_add(passed);
        if let Some(serves) = &mut instance.serves {
            serves.since = serves.since.saturating_add(passed);
        }
    }
    roll
}

/// The reply to a beat.
#[derive(Debug)]
pub(super) struct BeatReply {
    /// The number of instances.
    pub(super) count: u32,
    /// Our entry.
    pub(super) said: Vec<u8>,
    /// The instances; `None` if we may not read the list.
    pub(super) roll: Option<Roll>,
}

/// A roll, and when it was called.
#[derive(Debug)]
pub(super) struct DatedRoll {
    pub(super) roll: Roll,
    pub(super) at: Instant,
}

impl DatedRoll {
    /// Returns the list as of now; `None` once all instances on it may be gone.
    pub(super) fn now(&self) -> Option<Roll> {
        let passed = self.at.elapsed();
        (passed < GONE).then(|| later(&self.roll, passed))
    }
}

/// The server's seconds, the count, our entry, and all members with their scores, if we may read them.
type RollReply = (u64, u32, Vec<u8>, Option<Vec<Vec<u8>>>);

impl BeatReply {
    /// Reads what the script answered to the instance `this`.
    pub(super) fn read(reply: Value, this: &str) -> Result<Self, CallError> {
        let read = protocol::from_redis_value::<RollReply>(reply);
        let (now, count, said, there) =
            read.map_err(|error| CallError::malformed(error.to_string()))?;
        // An instance that sees no list is not alone because of that, and agrees with no other.
        let Some(there) = there else {
            let roll = None;
            return Ok(Self { count, said, roll });
        };
        let mut instances = vec![instance(&said, now, now)];
        for pair in there.chunks_exact(2) {
            let [member, heard] = pair else { continue };
            let heard = crate::foreign_keys::number(heard).unwrap_or(0);
            // Skips members that left in this very step, and our own previous entry.
            let is_gone = heard.saturating_add(GONE.as_secs()) <= now;
            let other = instance(member, heard, now);
            if !is_gone && other.name != this {
                instances.push(other);
            }
        }
        if let Some(first) = instances.first_mut() {
            first.is_this = true;
        }
        // Of two entries of one instance, the later counts.
        instances.sort_by(|a, b| {
            let place = |it: &Instance| (!it.is_this, it.name.clone(), it.heard);
            place(a).cmp(&place(b))
        });
        instances.dedup_by(|later, earlier| later.name == earlier.name);
        Ok(Self {
            count,
            said,
            roll: Some(Roll { instances }),
        })
    }
}

/// Reads a member. Other clients of Redis may have written it: a member in another form has no
/// announcement.
fn instance(member: &[u8], heard: u64, now: u64) -> Instance {
    let member = String::from_utf8_lossy(member);
    let mut words = member.split(' ');
    let name = words.next().unwrap_or_default();
    let serves = match (words.next(), words.next(), words.next()) {
        (Some(version), Some(program), Some(since)) => {
            let since: Option<u64> = since.parse().ok();
            let is_sound = is_word(version, VERSION_MAX) && is_word(program, PROGRAM_MAX);
            let zones = words.next().filter(|zones| is_word(zones, VERSION_MAX));
            since.filter(|_| is_sound).map(|since| InstanceConfig {
                version: version.to_owned(),
                program: program.to_owned(),
                zones: zones.map(str::to_owned),
                since: Duration::from_secs(now.saturating_sub(since)),
            })
        }
        _ => None,
    };
    Instance {
        name: name.chars().take(NAME_MAX).collect(),
        is_this: false,
        heard: Duration::from_secs(now.saturating_sub(heard)),
        serves,
    }
}

/// Returns true if `text` can be part of an announcement.
pub(super) fn is_word(text: &str, max: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    !text.is_empty() && text.len() <= max && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(said: &str, there: &[(&str, &str)]) -> Roll {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let there = there.iter().flat_map(|(it, at)| [text(it), text(at)]);
        let reply = vec![
            Value::Int(1_000),
            Value::Int(3),
            text(said),
            Value::Array(there.collect()),
        ];
        let answer = BeatReply::read(Value::Array(reply), "me").unwrap();
        assert_eq!(answer.count, 3);
        answer.roll.unwrap()
    }

    #[test]
    fn the_roll_starts_with_this_instance_and_omits_those_that_left() {
        let roll = answer(
            "me aa 0.1.0 990",
            &[
                ("gone", "985"),
                ("me bb 0.1.0 1", "995"),
                ("z", "986"),
                ("b aa 0.1.0 400", "998"),
            ],
        );
        let names: Vec<&str> = roll.instances.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["me", "b", "z"]);
        let configs: Vec<_> = roll.instances.iter().map(|it| it.serves.as_ref()).collect();
        let since: Vec<_> = configs
            .iter()
            .map(|it| it.map(|it| it.since.as_secs()))
            .collect();
        assert_eq!(since, [Some(10), Some(600), None]);
        assert_eq!(roll.instances[2].heard, Duration::from_secs(14));
        assert!(roll.instances[0].is_this && !roll.instances[1].is_this);
    }

    #[test]
    fn malformed_announcements_are_ignored() {
        let long = format!("a {} 0.1.0 1", "a".repeat(17));
        for member in [
            "a",
            "a b",
            "a b c",
            "a b c d",
            "a b c -1",
            "a b\n c 1",
            "a  c 1",
            &long,
        ] {
            let roll = answer("me", &[(member, "999")]);
            assert_eq!(roll.instances[1].name, "a", "{member}");
            assert_eq!(roll.instances[1].serves, None, "{member}");
        }
        // An entry of an earlier version has no time zones, and one of a later version may have more fields.
        for (member, zones) in [
            ("a b c 1", None),
            ("a b c 1 2026e", Some("2026e")),
            ("a b c 1 2026e more", Some("2026e")),
            ("a b c 1 2026\n", None),
        ] {
            let roll = answer("me", &[(member, "999")]);
            let serves = roll.instances[1].serves.as_ref().unwrap();
            assert_eq!(serves.zones.as_deref(), zones, "{member}");
        }
    }

    #[test]
    fn the_later_of_two_announcements_wins() {
        let roll = answer("me", &[("a x 1 1", "990"), ("a y 1 1", "995")]);
        assert_eq!(roll.instances.len(), 2);
        assert_eq!(roll.instances[1].serves.as_ref().unwrap().version, "y");
    }

    #[test]
    fn the_ages_in_a_roll_grow_with_the_roll() {
        let roll = answer("me aa 1 990", &[]);
        let later = later(&roll, Duration::from_secs(3)).instances.remove(0);
        assert_eq!(later.heard, Duration::from_secs(3));
        assert_eq!(later.serves.unwrap().since, Duration::from_secs(13));
    }
}
