//! The common and combined log formats of nginx and Apache.
//!
//! ```text
//! 203.0.113.7 - ann [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2326 "referrer" "agent"
//! ```
//!
//! If the line begins with the virtual host, as in Apache's `vhost_combined`, that is the host. Fields
//! after the agent are ignored.

use super::target;
use crate::simulate::event::Event;
use crate::timestamps::common_log;
use std::borrow::Cow;
use std::net::IpAddr;
use tidegate_frontends::wire::fault::{WireFault, quote};
use tidegate_frontends::wire::json::JsonResult;
use tidegate_frontends::wire::question::JsonQuestion;

/// Parses one line into `event`, which must be empty.
pub fn read<'a>(line: &'a [u8], event: &mut Event<'a>) -> JsonResult<()> {
    let text = std::str::from_utf8(line)
        .map_err(|error| WireFault::new(error.valid_up_to(), "not valid UTF-8"))?;
    // The position of an error follows from the length of the remaining text.
    let at = |rest: &str| text.len().saturating_sub(rest.len());
    let fault = |rest: &str, message: &'static str| WireFault::new(at(rest), message);

    let question = &mut event.question;
    let (head, rest) = text
        .split_once(" [")
        .ok_or_else(|| fault("", "expected a time in brackets, found none"))?;
    read_head(head, question)?;

    let (time, rest) = rest
        .split_once("] \"")
        .ok_or_else(|| fault(rest, "expected a time in brackets and a request in quotes"))?;
    let Some(when) = common_log(time) else {
        let message = format!("{} is not a time", quote(time));
        return Err(WireFault::new(head.len() + 2, message));
    };

    let (request, rest) =
        quoted(rest).ok_or_else(|| fault(rest, "expected a request in quotes"))?;
    if !target::read_line(request, question) {
        return Err(fault(rest, "the client sent no request line"));
    }
    read_tail(rest, question).ok_or_else(|| fault(rest, "expected a status"))?;
    event.at = when;
    Ok(())
}

/// Parses the fields before the time: `client ident user`, optionally with a host in front.
fn read_head<'a>(head: &'a str, question: &mut JsonQuestion<'a>) -> JsonResult<()> {
    let (first, mut rest) = head.split_once(' ').unwrap_or((head, ""));
    let mut client = first.parse::<IpAddr>().ok();
    if client.is_none() {
        let (second, after) = rest.split_once(' ').unwrap_or((rest, ""));
        client = second.parse().ok();
        question.host = Some(Cow::Borrowed(first));
        rest = after;
    }
    if client.is_none() {
        let message = format!("{} is not the address of a client", quote(first));
        return Err(WireFault::new(0, message));
    }
    question.ip = client;
    let user = rest.split_once(' ').map(|(_ident, user)| user);
    question.user = user.filter(|user| is_known(user)).map(Cow::Borrowed);
    Ok(())
}

/// Parses the fields after the request: ` status size "referrer" "agent"`.
fn read_tail<'a>(tail: &'a str, question: &mut JsonQuestion<'a>) -> Option<()> {
    let status = tail.strip_prefix(' ')?;
    let status = status.split(' ').next()?;
    if status.len() != 3 || !status.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut rest = tail;
    for name in ["Referer", "User-Agent"] {
        let Some((value, after)) = rest.split_once('"').and_then(|(_, rest)| quoted(rest)) else {
            break;
        };
        if is_known(&value) {
            question.headers.push((Cow::Borrowed(name), value));
        }
        rest = after;
    }
    Some(())
}

/// Returns true if the field is present. These formats write a dash for an absent one.
fn is_known(text: &str) -> bool {
    !text.is_empty() && text != "-"
}

/// Returns the text up to the closing quote, and the rest after it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut end = text.find(['"', '\\'])?;
    if text.as_bytes().get(end) == Some(&b'"') {
        return Some((text.get(..end)?.into(), text.get(end + 1..)?));
    }
    // Apache and nginx both escape characters that would end the text too early.
    let mut bytes = text.as_bytes().get(..end)?.to_vec();
    loop {
        match *text.as_bytes().get(end)? {
            b'"' => break,
            b'\\' => {
                let (byte, len) = unescape(text.as_bytes().get(end..)?)?;
                bytes.push(byte);
                end += len;
            }
            byte => {
                bytes.push(byte);
                end += 1;
            }
        }
    }
    let value = String::from_utf8_lossy(&bytes).into_owned();
    Some((Cow::Owned(value), text.get(end + 1..)?))
}

/// Returns the byte that the escape at the start of `text` stands for, and its length: `\"`, `\\`, `\n`,
/// `\x22` and similar. A backslash that begins none of them stands for itself.
fn unescape(text: &[u8]) -> Option<(u8, usize)> {
    let hex = |nth: usize| char::from(*text.get(nth)?).to_digit(16);
    Some(match text.get(1)? {
        b'x' => match (hex(2), hex(3)) {
            (Some(high), Some(low)) => (u8::try_from(high * 16 + low).ok()?, 4),
            _ => (b'\\', 1),
        },
        b'n' => (b'\n', 2),
        b'r' => (b'\r', 2),
        b't' => (b'\t', 2),
        b'v' => (0x0b, 2),
        b'b' => (0x08, 2),
        b'f' => (0x0c, 2),
        byte @ (b'"' | b'\\') => (*byte, 2),
        _ => (b'\\', 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "[14/Nov/2023:22:13:20 +0000]";

    fn run(line: &str) -> Result<String, String> {
        let mut event = Event::default();
        read(line.as_bytes(), &mut event)
            .map_err(|fault| format!("{}: {fault}", fault.column(line.as_bytes())))?;
        let q = &event.question;
        let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or("·").to_owned();
        Ok(format!(
            "{} {} {} {} {} {:?}",
            q.ip.map_or_else(String::new, |ip| ip.to_string()),
            text(&q.user),
            text(&q.host),
            text(&q.method),
            text(&q.path),
            q.headers,
        ))
    }

    #[test]
    fn lines_of_nginx_and_apache_are_read() {
        for (line, expected) in [
            (
                format!(r#"192.0.2.1 - - {TIME} "GET /a HTTP/1.1" 200 5"#),
                "192.0.2.1 · · GET /a []",
            ),
            (
                format!(r#"2001:db8::1 - ann b {TIME} "GET /a HTTP/1.1" 200 - "-" "curl/8.0""#),
                r#"2001:db8::1 ann b · GET /a [("User-Agent", "curl/8.0")]"#,
            ),
            (
                format!(r#"h.example:443 192.0.2.1 - - {TIME} "GET /a HTTP/1.1" 200 5 "r" "-" x"#),
                r#"192.0.2.1 · h.example:443 GET /a [("Referer", "r")]"#,
            ),
            (
                format!(
                    r#"192.0.2.1 - - {TIME} "GET /\"\x22\\ HTTP/1.1" 200 5 "-" "a\"b\xc3\xbc\q""#
                ),
                r#"192.0.2.1 · · GET /""\ [("User-Agent", "a\"bü\\q")]"#,
            ),
        ] {
            assert_eq!(run(&line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn errors_are_reported() {
        for (line, expected) in [
            (String::new(), "1: expected a time in brackets, found none"),
            (
                format!(r#"somewhere - - {TIME} "GET / HTTP/1.1" 200 5"#),
                "1: `somewhere` is not the address of a client",
            ),
            (
                r#"192.0.2.1 - - [yesterday] "GET / HTTP/1.1" 200 5"#.to_owned(),
                "16: `yesterday` is not a time",
            ),
            (
                format!(r#"192.0.2.1 - - {TIME} "-" 408 0"#),
                "47: the client sent no request line",
            ),
            (
                format!(r#"192.0.2.1 - - {TIME} "GET / HTTP/1.1"#),
                "45: expected a request in quotes",
            ),
            (
                format!(r#"192.0.2.1 - - {TIME} "GET / HTTP/1.1" OK"#),
                "60: expected a status",
            ),
        ] {
            assert_eq!(run(&line), Err(expected.to_owned()), "{line}");
        }
    }
}
