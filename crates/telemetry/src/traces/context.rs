//! The trace of a request, from the W3C's `traceparent` header.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header with the ids of a trace and its parent span.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header with the data of other tracing systems.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The length of version 00; later versions begin with the same fields.
const LENGTH: usize = 55;

/// The trace that a caller sent with its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The id of the trace.
    pub trace: u128,
    /// The id of the parent span.
    pub span: u64,
    /// True if the caller records the trace.
    pub is_sampled: bool,
}

impl Context {
    /// Parses these headers. Returns `None` if the header is missing, repeated or malformed: a new trace
    /// begins then.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(&TRACEPARENT).iter();
        match (values.next(), values.next()) {
            (Some(only), None) => Self::parse(only.as_bytes()),
            _ => None,
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let (known, rest) = text.split_at_checked(LENGTH)?;
        let known = std::str::from_utf8(known).ok()?;
        let mut parts = known.split('-');
        let version = hex(parts.next()?, 2)?;
        let (trace, span) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?);
        let flags = hex(parts.next()?, 2)?;
        let is_known = match version {
            0 => rest.is_empty(),
            0xff => false,
            // Later versions add their fields after another dash.
            _ => rest.first().is_none_or(|byte| *byte == b'-'),
        };
        let is_whole = parts.next().is_none() && trace != 0 && span != 0;
        (is_known && is_whole).then_some(Self {
            trace,
            span: u64::try_from(span).ok()?,
            is_sampled: flags & 1 == 1,
        })
    }

    /// Returns the same as a header, for the next service.
    pub fn header(&self) -> Option<HeaderValue> {
        let flags = u8::from(self.is_sampled);
        let text = format!("00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span);
        HeaderValue::try_from(text).ok()
    }
}

/// Parses a number of exactly `digits` lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_small = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != digits || !text.bytes().all(is_small) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn parse(text: &str) -> Option<Context> {
        Context::parse(text.as_bytes())
    }

    #[test]
    fn a_trace_header_round_trips() {
        let context = parse(GOOD).unwrap();
        assert_eq!(
            context,
            Context {
                trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
                span: 0xb7ad_6b71_6920_3331,
                is_sampled: true,
            }
        );
        assert_eq!(context.header().unwrap(), GOOD);
        let unsampled = parse(&GOOD.replace("-01", "-02")).unwrap();
        assert!(!unsampled.is_sampled, "the other flags are not ours");
    }

    #[test]
    fn later_versions_are_parsed_as_far_as_known() {
        let later = GOOD.replacen("00", "cc", 1);
        assert_eq!(parse(&later), parse(GOOD));
        assert_eq!(
            parse(&format!("{later}-what-the-future-brings")),
            parse(GOOD)
        );
        assert_eq!(parse(&format!("{later}.no")), None);
    }

    #[test]
    fn invalid_trace_headers_are_ignored() {
        for text in [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-00"),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let mut headers = HeaderMap::new();
        assert_eq!(Context::of(&headers), None);
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(Context::of(&headers).is_some());
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert_eq!(Context::of(&headers), None, "whose is it, said twice?");
    }
}
