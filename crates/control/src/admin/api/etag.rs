//! Versions: optimistic concurrency with `ETag`, `If-Match` and `If-None-Match`.

use super::problem::AdminProblem;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tidegate_policy::text::Sha256;

/// The version of a document. It is computed from the content, so it is the same on every instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ETag(String);

/// The versions that a caller must have seen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExpectedVersions {
    /// Any version.
    Any,
    /// One of these.
    These(Vec<ETag>),
}

/// The maximum number of versions in a header.
const LIST_MAX: usize = 16;

impl ETag {
    /// Returns the version of a document.
    pub(super) fn of(document: &Value) -> Self {
        Self::of_text(&document.to_string())
    }

    /// Returns the version of a text, or of something that has a digest.
    pub(super) fn of_text(text: &str) -> Self {
        let hash = Sha256::of(text.as_bytes()).to_string();
        let digits = hash.trim_start_matches("sha256:");
        // Long enough that no two versions collide.
        Self(digits.chars().take(32).collect())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the header value.
    pub(super) fn header(&self) -> HeaderValue {
        // Valid, because it consists of hexadecimal digits.
        HeaderValue::try_from(format!("\"{}\"", self.0)).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

impl ExpectedVersions {
    /// Reads `If-Match`. It is required: without it, a caller could overwrite a version that it has not
    /// seen.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, AdminProblem> {
        read(headers, &IF_MATCH)?.ok_or_else(AdminProblem::version_missing)
    }

    /// Fails if `now` is not one of the expected versions.
    pub(super) fn check(&self, now: &ETag) -> Result<(), AdminProblem> {
        let is_meant = match self {
            Self::Any => true,
            Self::These(these) => these.contains(now),
        };
        if is_meant {
            return Ok(());
        }
        let detail = "it has changed since you have seen it";
        let help = format!("it is at \"{}\" now: look at it again", now.as_str());
        let place = "header.If-Match";
        Err(AdminProblem::stale(detail).with_help(place, "this version is gone", Some(&help)))
    }
}

/// Returns true if the caller has seen this version already (`If-None-Match`).
pub(super) fn is_seen(headers: &HeaderMap, now: &ETag) -> bool {
    match read(headers, &IF_NONE_MATCH) {
        Ok(Some(ExpectedVersions::These(these))) => these.contains(now),
        Ok(Some(ExpectedVersions::Any)) => true,
        Ok(None) | Err(_) => false,
    }
}

fn read(headers: &HeaderMap, name: &HeaderName) -> Result<Option<ExpectedVersions>, AdminProblem> {
    let bad = |why: &str| AdminProblem::malformed(&format!("header.{name}"), why);
    let mut these = Vec::new();
    let mut is_there = false;
    let mut is_empty = true;
    for value in headers.get_all(name) {
        is_there = true;
        let text = value.to_str().map_err(|_| bad("it is no text"))?;
        if text.trim() == "*" {
            return Ok(Some(ExpectedVersions::Any));
        }
        for one in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            is_empty = false;
            // A weak tag means that two versions are equivalent, never that they are identical.
            let strong = one.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let weak = one.strip_prefix("W/\"").is_some_and(|it| it.ends_with('"'));
            match strong {
                Some(tag) => these.push(ETag(tag.to_owned())),
                None if weak => {}
                None => return Err(bad("expected versions in quotes, or *")),
            }
        }
    }
    if is_there && is_empty {
        return Err(bad("it names no version"));
    }
    if these.len() > LIST_MAX {
        return Err(bad("it lists too many"));
    }
    Ok(is_there.then_some(ExpectedVersions::These(these)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(values: &[&str]) -> Result<ExpectedVersions, u16> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IF_MATCH, HeaderValue::try_from(*value).unwrap());
        }
        ExpectedVersions::of(&headers).map_err(|refusal| refusal.status())
    }

    #[test]
    fn etags_must_be_quoted_and_strong() {
        let tag = |text: &str| ETag(text.to_owned());
        assert_eq!(expected(&["*"]), Ok(ExpectedVersions::Any));
        assert_eq!(
            expected(&["\"a\", \"b\"", "\"c\""]),
            Ok(ExpectedVersions::These(vec![tag("a"), tag("b"), tag("c")]))
        );
        assert_eq!(expected(&["W/\"a\""]), Ok(ExpectedVersions::These(vec![])));
        assert_eq!(expected(&[]), Err(428));
        assert_eq!(expected(&["a"]), Err(400));
        assert_eq!(expected(&["\""]), Err(400));
        assert_eq!(expected(&[""]), Err(400));
    }

    #[test]
    fn a_changed_version_fails_the_precondition() {
        let (before, now) = (ETag::of_text("a"), ETag::of_text("b"));
        assert!(ExpectedVersions::Any.check(&now).is_ok());
        assert!(
            ExpectedVersions::These(vec![before.clone(), now.clone()])
                .check(&now)
                .is_ok()
        );
        let gone = ExpectedVersions::These(vec![before])
            .check(&now)
            .unwrap_err();
        assert_eq!(gone.status(), 412);
    }
}
