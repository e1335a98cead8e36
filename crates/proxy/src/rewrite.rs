//! Header changes of a route.

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use tidegate_policy::route::Rewrite;

/// The header changes of a route, prepared.
#[derive(Debug, Default)]
pub struct HeaderChanges {
    remove: Vec<HeaderName>,
    set: Vec<(HeaderName, HeaderValue)>,
    add: Vec<(HeaderName, HeaderValue)>,
}

impl HeaderChanges {
    /// Prepares the changes of `rewrite`, which holds valid names and values.
    pub fn new(rewrite: &Rewrite) -> Self {
        let name = |name: &String| HeaderName::from_bytes(name.as_bytes()).ok();
        let pairs = |pairs: &[(String, String)]| {
            let pairs = pairs.iter();
            pairs
                .filter_map(|(key, value)| {
                    let mut value = HeaderValue::from_str(value).ok()?;
                    // Gateways are configured with secrets to send.
                    value.set_sensitive(true);
                    Some((name(key)?, value))
                })
                .collect()
        };
        Self {
            remove: rewrite.remove.iter().filter_map(name).collect(),
            set: pairs(&rewrite.set),
            add: pairs(&rewrite.add),
        }
    }

    /// Returns true if nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    /// Applies the changes to `headers`.
    #[inline]
    pub fn apply(&self, headers: &mut HeaderMap) {
        for name in &self.remove {
            headers.remove(name);
        }
        for (name, value) in &self.set {
            headers.insert(name, value.clone());
        }
        for (name, value) in &self.add {
            headers.append(name, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_removed_then_set_then_added() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let changes = HeaderChanges::new(&Rewrite {
            remove: vec!["x-debug".to_owned(), "x-both".to_owned()],
            set: vec![pair("x-env", "prod"), pair("x-both", "set")],
            add: vec![pair("x-both", "added")],
        });
        let mut headers = HeaderMap::new();
        for name in ["x-debug", "x-env", "x-env", "x-both", "x-other"] {
            headers.append(name, HeaderValue::from_static("before"));
        }
        changes.apply(&mut headers);
        let all = |name| headers.get_all(name).iter().collect::<Vec<_>>();
        assert!(!headers.contains_key("x-debug"));
        assert_eq!(all("x-env"), ["prod"]);
        assert_eq!(all("x-both"), ["set", "added"]);
        assert_eq!(all("x-other"), ["before"]);
    }
}
