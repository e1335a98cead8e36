//! Access logs in JSON, in the formats of Traefik, Envoy and Caddy.
//!
//! Their fields have different names, but nearly the same meanings. So one table of names serves them
//! all, and other logs that use the same names. See `names`.

mod names;
#[cfg(test)]
mod tests;

use super::target;
use crate::simulate::event::Event;
use crate::timestamps;
use names::{Meaning, meaning};
use std::borrow::Cow;
use std::net::IpAddr;
use tidegate::Timestamp;
use tidegate_frontends::wire::fault::{WireFault, quote};
use tidegate_frontends::wire::json::{JsonReader, JsonResult};
use tidegate_frontends::wire::question::PAIRS_MAX;

/// The value that Traefik and Caddy write in place of a redacted header.
const REDACTED: &str = "REDACTED";

/// Parses one line into `event`, which must be empty.
pub fn read<'a>(line: &'a [u8], event: &mut Event<'a>) -> JsonResult<()> {
    let mut reader = JsonReader::new(line)?;
    let mut entry = LogEntry {
        time: BestValue::default(),
        client: BestValue::default(),
        event,
    };
    entry.read(&mut reader)?;
    reader.end()?;
    let missing = |what: &str| {
        let message = format!("expected the {what} in a field of a known name, found none");
        WireFault::new(reader.at(), message)
    };
    let LogEntry {
        time,
        client,
        event,
    } = entry;
    event.at = time.value.ok_or_else(|| missing("time of the request"))?;
    event.question.ip = Some(client.value.ok_or_else(|| missing("client's address"))?);
    Ok(())
}

/// The fields parsed so far.
struct LogEntry<'e, 'a> {
    time: BestValue<Timestamp>,
    client: BestValue<IpAddr>,
    event: &'e mut Event<'a>,
}

/// The best of several fields with the same meaning.
struct BestValue<T> {
    rank: u8,
    value: Option<T>,
}

// === impl Best ===

impl<T> Default for BestValue<T> {
    fn default() -> Self {
        Self {
            rank: 0,
            value: None,
        }
    }
}

impl<T> BestValue<T> {
    fn offer(&mut self, rank: u8, value: T) {
        if rank > self.rank {
            self.rank = rank;
            self.value = Some(value);
        }
    }
}

// === impl LogEntry ===

impl<'a> LogEntry<'_, 'a> {
    /// Parses the fields of an object: the line, or the request inside it.
    fn read(&mut self, reader: &mut JsonReader<'a>) -> JsonResult<()> {
        reader.object(|reader, name| match meaning(name) {
            Some(meaning) => self.field(reader, name.clone(), meaning),
            None => reader.skip(),
        })
    }

    fn field(
        &mut self,
        reader: &mut JsonReader<'a>,
        name: Cow<'a, str>,
        meaning: Meaning,
    ) -> JsonResult<()> {
        let at = reader.at();
        match (meaning, reader.peek()) {
            (Meaning::Request, Some(b'{')) => return self.read(reader),
            (Meaning::Headers, Some(b'{')) => return self.headers(reader),
            (Meaning::Time(rank), Some(b'0'..=b'9')) => {
                let text = reader.number()?;
                return self.time(rank, text, at);
            }
            (_, Some(b'"')) => {}
            // Other logs use some of these names with another meaning.
            _ => return reader.skip(),
        }
        let text = reader.string()?;
        if text.is_empty() || text == "-" {
            return Ok(());
        }
        let question = &mut self.event.question;
        match meaning {
            Meaning::Time(rank) => return self.time(rank, &text, at),
            Meaning::Client(rank) => match address(&text) {
                Some(client) => self.client.offer(rank, client),
                None => {
                    let message = format!("{} is not an IP address", quote(&text));
                    return Err(WireFault::new(at, message));
                }
            },
            Meaning::Forwarded => self.event.forwarded = Some(text),
            Meaning::User => question.user = Some(text),
            Meaning::Method => question.method = Some(text),
            Meaning::Host => question.host = Some(text),
            Meaning::Target => target::read(text, question),
            Meaning::Route => question.route = Some(text),
            Meaning::Header(known) => self.header(Cow::Borrowed(known), text),
            Meaning::Prefixed(len) => self.header(after(name, len), text),
            // A request line, if it is not an object.
            Meaning::Request => {
                target::read_line(text, question);
            }
            Meaning::Headers => {}
        }
        Ok(())
    }

    fn time(&mut self, rank: u8, text: &str, at: usize) -> JsonResult<()> {
        let Some(time) = timestamps::any(text) else {
            let message = format!("{} is not a time", quote(text));
            return Err(WireFault::new(at, message));
        };
        self.time.offer(rank, time);
        Ok(())
    }

    /// Parses headers in Caddy's format: each a list of values.
    fn headers(&mut self, reader: &mut JsonReader<'a>) -> JsonResult<()> {
        reader.object(|reader, name| match reader.peek() {
            Some(b'[') => reader.list(|reader, _| {
                let value = reader.string()?;
                self.header(name.clone(), value);
                Ok(())
            }),
            Some(b'"') => {
                let value = reader.string()?;
                self.header(name.clone(), value);
                Ok(())
            }
            _ => reader.skip(),
        })
    }

    fn header(&mut self, name: Cow<'a, str>, value: Cow<'a, str>) {
        // A common value for all of them would put all clients into one bucket.
        if value != REDACTED && self.event.question.headers.len() < PAIRS_MAX {
            self.event.question.headers.push((name, value));
        }
    }
}

/// Parses an address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let without_port = || {
        let (host, _port) = text.rsplit_once(':')?;
        let host = host.strip_prefix('[').unwrap_or(host);
        host.strip_suffix(']').unwrap_or(host).parse().ok()
    };
    text.parse().ok().or_else(without_port)
}

/// Returns the name without the first `len` bytes.
fn after(name: Cow<'_, str>, len: usize) -> Cow<'_, str> {
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.get(len..).unwrap_or_default()),
        Cow::Owned(name) => Cow::Owned(name.get(len..).unwrap_or_default().to_owned()),
    }
}
