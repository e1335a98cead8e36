//! Cookies in the format of RFC 6265, 5.4.

/// Returns the values of the cookie `name` in one line of `Cookie`, in the order sent.
pub(super) fn values<'a>(line: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    line.split(|byte| *byte == b';').filter_map(move |pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let sent = pair.get(..at)?.trim_ascii();
        // Cookie names are case-sensitive.
        (sent == name.as_bytes()).then(|| unquoted(pair.get(at + 1..).unwrap_or_default()))
    })
}

fn unquoted(value: &[u8]) -> &[u8] {
    let value = value.trim_ascii();
    let inner = value.strip_prefix(b"\"");
    inner
        .and_then(|inner| inner.strip_suffix(b"\""))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::values;

    fn all(line: &str, name: &str) -> Vec<String> {
        let found = values(line.as_bytes(), name);
        found
            .map(|value| String::from_utf8_lossy(value).into_owned())
            .collect()
    }

    #[test]
    fn cookies_are_found_by_name() {
        for (line, found) in [
            ("sid=1", &["1"][..]),
            ("a=0; sid=1; b=2", &["1"]),
            ("a=0;sid=1", &["1"]),
            ("sid = 1 ;", &["1"]),
            ("sid=\"1\"", &["1"]),
            ("sid=a=b", &["a=b"]),
            ("sid=", &[""]),
            ("sid=1; sid=2", &["1", "2"]),
            ("Sid=1; xsid=2; sidx=3; sid", &[]),
            ("", &[]),
            (";;=;", &[]),
            ("sid=\"", &["\""]),
        ] {
            assert_eq!(all(line, "sid"), found, "{line}");
        }
    }
}
