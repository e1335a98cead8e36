//! `statsd`: the export of limit statistics.

use super::condition::pairs;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::table::FieldTable;
use crate::language::table::Shape::{Flag, Pairs, Text, Word};
use crate::language::table::optional;
use crate::language::words::{FLAG, STATSD_FORMAT, STATSD_PROTOCOL};
use crate::statsd::Statsd;
use std::time::Duration;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// The maximum number of tags, and the longest part of a name in bytes.
const TAGS_MAX: usize = 32;
const LENGTH_MAX: usize = 128;

/// The longest prefix with all tags, in bytes. Together with the name of a limit, a line must fit in a
/// datagram.
const LINE_MAX: usize = 1_000;

/// The bytes of a tag in a line in addition to its name and value: `.__` and `=`.
const TAG_SIGNS: usize = 4;

/// The fields of `statsd`.
pub(crate) static STATSD: FieldTable = FieldTable {
    what: "`statsd`",
    fields: &[
        optional("enabled", Flag, "`false` sends nothing. Default: true."),
        optional(
            "address",
            Text("127.0.0.1:8125"),
            "Host and port of the statsd server. Default: `127.0.0.1:8125`.",
        ),
        optional(
            "protocol",
            Word(&STATSD_PROTOCOL),
            "Transport protocol. Default: `udp`.",
        ),
        optional(
            "format",
            Word(&STATSD_FORMAT),
            "`statsd`: tags become part of the name, `name.__tag=value`, as gostats writes them. \
             `dogstatsd`: tags follow the value. Default: `statsd`.",
        ),
        optional(
            "interval",
            Text("10s"),
            "Time between two flushes, 1s to 1h. Default: `10s`.",
        ),
        optional(
            "prefix",
            Text("tidegate.rate_limit"),
            "Prefix of every name; `ratelimit.service.rate_limit` in envoyproxy/ratelimit. \
             Default: `tidegate.rate_limit`.",
        ),
        optional(
            "tags",
            Pairs,
            "Up to 32 tags of every statistic. In values, `.`, `:` and `|` become `_`, as with \
             gostats. `prefix` and all tags together take at most 1,000 bytes of a line (a tag: its \
             name, its value and 4 bytes). Default: none.",
        ),
    ],
    exactly_one: &[],
};

/// Reads `statsd`.
pub(crate) fn read(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Statsd> {
    let fields = reader.fields(value, &STATSD)?;
    let defaults = Statsd::default();
    let enabled = reader.setting(&fields, "enabled", |word| FLAG.parse(word));
    let address = reader.setting(&fields, "address", Statsd::parse_address);
    let protocol = reader.setting(&fields, "protocol", |word| STATSD_PROTOCOL.parse(word));
    let format = reader.setting(&fields, "format", |word| STATSD_FORMAT.parse(word));
    let interval = reader.setting(&fields, "interval", interval);
    let prefix = reader.setting(&fields, "prefix", prefix);
    let tags = pairs(reader, &fields, "tags", tag, |_, text| tag_value(text));
    if let (true, Some(value)) = (tags.len() > TAGS_MAX, fields.get("tags")) {
        let fault = ConfigFault::new(format!("there are more than {TAGS_MAX} tags"));
        reader.error(value.key_spot(), fault);
    }
    let prefix = prefix.unwrap_or(defaults.prefix);
    let in_tags = tags
        .iter()
        .map(|(name, value)| name.len() + value.len() + TAG_SIGNS);
    let length = prefix.len() + in_tags.sum::<usize>();
    if let (true, Some(value)) = (length > LINE_MAX, fields.get("tags")) {
        let message = format!(
            "prefix and tags take {length} bytes of every line, which is more than {LINE_MAX}"
        );
        let fault = ConfigFault::new(message).help("use fewer tags, or shorter ones");
        reader.error(value.key_spot(), fault);
    }
    Some(Statsd {
        enabled: enabled.unwrap_or(defaults.enabled),
        address: address.unwrap_or(defaults.address),
        protocol: protocol.unwrap_or_default(),
        format: format.unwrap_or_default(),
        interval: interval.unwrap_or(defaults.interval),
        prefix,
        tags,
    })
}

impl Statsd {
    /// Reads host and port.
    fn parse_address(text: &str) -> Result<String, ConfigFault> {
        let parts = text.rsplit_once(':');
        let is_valid = parts.is_some_and(|(host, port)| {
            let is_host = (1..=255).contains(&host.len())
                && host.bytes().all(|byte| byte.is_ascii_graphic())
                && !host.contains('/');
            is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if is_valid {
            return Ok(text.to_owned());
        }
        let fault = ConfigFault::new(format!(
            "{} is not a host and a port",
            ConfigFault::quote(text)
        ));
        Err(fault.help("for example `127.0.0.1:8125` or `statsd.monitoring:9125`"))
    }
}

fn interval(text: &str) -> Result<Duration, ConfigFault> {
    let length = Duration::from_micros(duration::parse(text)?);
    if (Statsd::SHORTEST..=Statsd::LONGEST).contains(&length) {
        return Ok(length);
    }
    let message = format!("{} is not from 1s to 1h", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help("for example `10s`"))
}

fn prefix(text: &str) -> Result<String, ConfigFault> {
    name(text, "prefix")
}

fn tag(text: &str) -> Result<String, ConfigFault> {
    name(text, "tag")
}

fn name(text: &str, what: &str) -> Result<String, ConfigFault> {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    if (1..=LENGTH_MAX).contains(&text.len()) && text.bytes().all(belongs) {
        return Ok(text.to_owned());
    }
    let message = format!("{} cannot be a {what}", ConfigFault::quote(text));
    Err(ConfigFault::new(message)
        .help("use 1 to 128 letters, digits, dots, dashes, slashes and underscores"))
}

fn tag_value(text: &str) -> Result<String, ConfigFault> {
    let belongs = |c: char| !c.is_control() && !",#".contains(c);
    if (1..=LENGTH_MAX).contains(&text.len()) && text.chars().all(belongs) {
        return Ok(text.to_owned());
    }
    let message = format!("{} cannot be the value of a tag", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help("use 1 to 128 bytes of text without `,` and `#`"))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::statsd::{Format, Statsd, StatsdProtocol};
    use std::time::Duration;

    fn read(section: &str) -> Result<Option<Statsd>, String> {
        let policies = "policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]";
        let config = Config::from_yaml(&format!("{section}\n{policies}"));
        config
            .map(|config| config.statsd)
            .map_err(|errors| errors.to_string())
    }

    #[test]
    fn every_setting_has_a_default() {
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("statsd: {}"), Ok(Some(Statsd::default())));
        let all = "statsd: { address: 'a.b:9125', protocol: tcp, format: dogstatsd, interval: 5s, \
                   prefix: ratelimit, tags: { env: prod, version: '1.2' }, enabled: false }";
        let expected = Statsd {
            enabled: false,
            address: "a.b:9125".to_owned(),
            protocol: StatsdProtocol::Tcp,
            format: Format::Dogstatsd,
            interval: Duration::from_secs(5),
            prefix: "ratelimit".to_owned(),
            tags: vec![
                ("env".to_owned(), "prod".to_owned()),
                ("version".to_owned(), "1.2".to_owned()),
            ],
        };
        assert_eq!(read(all), Ok(Some(expected)));
    }

    #[test]
    fn values_no_server_accepts_are_errors() {
        for (section, part) in [
            ("address: localhost", "is not a host and a port"),
            ("address: ':8125'", "is not a host and a port"),
            ("address: 'a:0'", "is not a host and a port"),
            ("interval: 500ms", "is not from 1s to 1h"),
            ("prefix: 'a b'", "cannot be a prefix"),
            ("tags: { 'a|b': c }", "cannot be a tag"),
            ("tags: { a: 'b,c' }", "cannot be the value of a tag"),
            ("protocol: sctp", "udp"),
        ] {
            let errors = read(&format!("statsd: {{ {section} }}")).unwrap_err();
            assert!(errors.contains(part), "{section}: {errors}");
        }
    }

    #[test]
    fn tags_that_fill_a_datagram_are_an_error() {
        // A prefix of 3 bytes, seven tags of 2 + 128 + 4 bytes, and one of 2 + 4 bytes and its value.
        let section = |last: usize| {
            let long = "v".repeat(128);
            let tags: Vec<String> = (0..7).map(|nth| format!("t{nth}: {long}")).collect();
            let last = "v".repeat(last);
            format!(
                "statsd: {{ prefix: abc, tags: {{ {}, t7: {last} }} }}",
                tags.join(", ")
            )
        };
        assert!(read(&section(53)).is_ok());
        let errors = read(&section(54)).unwrap_err();
        assert!(errors.contains("take 1001 bytes"), "{errors}");
    }
}
