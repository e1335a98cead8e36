//! `store.snapshot`: the file that keeps a store in memory over a restart.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::tables::store::SNAPSHOT;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_policy::store::{SnapshotSettings, StoreTarget};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// The shortest interval: each write waits for the disk.
const SHORTEST_US: u64 = 100_000;

/// The longest interval.
const LONGEST_US: u64 = 3_600_000_000;

/// Reads `store.snapshot`. It is an error for a store that is not in memory.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    value: Option<&ConfigValue<'_>>,
    target: &StoreTarget,
) -> Option<SnapshotSettings> {
    let value = value?;
    let fields = reader.fields(value, &SNAPSHOT)?;
    let file = fields
        .get("file")
        .and_then(|file| reader.parse(&file, file_path));
    let every = reader.setting(&fields, "every", every);
    if !target.is_memory() {
        let fault = ConfigFault::new("`snapshot` needs `url: memory`");
        let help = "remove it: Redis keeps the buckets over a restart of this process";
        reader.error(value.key_spot(), fault.help(help));
        return None;
    }
    Some(SnapshotSettings {
        file: file?,
        every: every.unwrap_or(SnapshotSettings::EVERY),
    })
}

/// Parses the path of the file. Whether it can be used is found at the start: another machine may check
/// the configuration.
fn file_path(text: &str) -> Result<PathBuf, ConfigFault> {
    let path = PathBuf::from(text);
    if path.file_name().is_none() || text.ends_with('/') {
        let message = format!("{} is not the path of a file", ConfigFault::quote(text));
        return Err(ConfigFault::new(message).help("for example `/var/lib/tidegate/buckets`"));
    }
    Ok(path)
}

fn every(text: &str) -> Result<Duration, ConfigFault> {
    let micros = duration::parse(text)?;
    if (SHORTEST_US..=LONGEST_US).contains(&micros) {
        return Ok(Duration::from_micros(micros));
    }
    let message = format!("{} is not from 100ms to 1h", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help("for example `10s`"))
}
