//! The path patterns of conditions.

use super::normalise::push_decoded;

/// A pattern of paths, by whole segments, case-sensitive.
///
/// `*` is exactly one segment and `**` any number, including none. The pattern matches the beginning of a
/// path unless it ends in `$`: `/` matches every path, `/$` only `/`. `$` alone matches a request without a
/// path, which no other pattern matches. Pattern and path are compared in normalised form, see
/// [`normalise`](super::normalise()).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    extent: PathExtent,
    segments: Vec<Segment>,
}

/// The part of a path that a pattern covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathExtent {
    /// Its beginning.
    Prefix,
    /// All of it.
    Whole,
    /// Requests without a path.
    NoPath,
}

/// One step of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// This segment.
    Literal(String),
    /// Any one segment.
    One,
    /// Any number of segments. Never twice in a row, and never last in a prefix.
    Any,
}

// === impl PathPattern ===

impl PathPattern {
    /// Parses a pattern. The error describes the mistake.
    ///
    /// ```
    /// use tidegate_policy::patterns::PathPattern;
    ///
    /// let spelt = |text| PathPattern::parse(text).map(|pattern| pattern.spelt());
    /// assert_eq!(spelt("/api/*/items")?, "/api/*/items");
    /// // A pattern matches the beginning of a path: a final `**` adds nothing.
    /// assert_eq!(spelt("/api/**")?, "/api");
    /// # Ok::<(), String>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "$" {
            return Ok(Self::new(text, PathExtent::NoPath, Vec::new()));
        }
        let (path, extent) = match text.strip_suffix('$') {
            Some(path) => (path, PathExtent::Whole),
            None => (text, PathExtent::Prefix),
        };
        check_path(path).map_err(|why| format!("path pattern `{text}` {why}"))?;
        let mut segments = Vec::new();
        for written in path.split('/') {
            let segment =
                parse_segment(written).map_err(|why| format!("path pattern `{text}` {why}"))?;
            match segment {
                Some(Segment::Any) if segments.last() == Some(&Segment::Any) => {}
                Some(segment) => segments.push(segment),
                None => {}
            }
        }
        if extent == PathExtent::Prefix && segments.last() == Some(&Segment::Any) {
            segments.pop();
        }
        Ok(Self::new(text, extent, segments))
    }

    fn new(text: &str, extent: PathExtent, segments: Vec<Segment>) -> Self {
        Self {
            text: text.to_owned(),
            extent,
            segments,
        }
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the whole path must match (`$`), not only its beginning.
    pub fn is_exact(&self) -> bool {
        self.extent != PathExtent::Prefix
    }

    /// Returns true if it matches only requests without a path (`$` alone).
    pub fn matches_only_empty(&self) -> bool {
        self.extent == PathExtent::NoPath
    }

    /// Returns the normalised form of the pattern; patterns that match the same paths have the same form.
    pub fn spelt(&self) -> String {
        let mut spelt = String::new();
        for segment in &self.segments {
            spelt.push('/');
            spelt.push_str(match segment {
                Segment::Literal(text) => text,
                Segment::One => "*",
                Segment::Any => "**",
            });
        }
        match self.extent {
            PathExtent::Prefix if spelt.is_empty() => "/".to_owned(),
            PathExtent::Prefix => spelt,
            PathExtent::Whole if spelt.is_empty() => "/$".to_owned(),
            PathExtent::Whole | PathExtent::NoPath => spelt + "$",
        }
    }

    /// Returns true if a path that it matches can begin with the segments of `prefix`, a normalised path.
    pub fn can_begin_with(&self, prefix: &str) -> bool {
        let mut segments = self.segments.iter();
        for wanted in prefix.split('/').filter(|segment| !segment.is_empty()) {
            match segments.next() {
                Some(Segment::Any) => return true,
                Some(Segment::One) => {}
                Some(Segment::Literal(text)) if text == wanted => {}
                Some(Segment::Literal(_)) => return false,
                None => return self.extent == PathExtent::Prefix,
            }
        }
        true
    }

    pub(crate) fn extent(&self) -> PathExtent {
        self.extent
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

/// Rejects text that cannot be part of any pattern.
fn check_path(path: &str) -> Result<(), &'static str> {
    if !path.starts_with('/') {
        Err("must start with `/`, or be `$` for requests without a path")
    } else if path.contains(['?', '#']) {
        Err("must end before `?` and `#`: query and fragment are no part of the path")
    } else if path.contains('$') {
        Err("may have `$` only at its end")
    } else {
        Ok(())
    }
}

/// Parses one segment into its normalised form. Returns `None` if normalisation removes it.
fn parse_segment(written: &str) -> Result<Option<Segment>, &'static str> {
    match written {
        "*" => return Ok(Some(Segment::One)),
        "**" => return Ok(Some(Segment::Any)),
        _ if written.contains('*') => {
            return Err("may use `*` and `**` only as whole segments, as in `/a/*/b`");
        }
        _ => {}
    }
    let mut segment = String::new();
    push_decoded(&mut segment, written);
    match segment.as_str() {
        "" | "." => Ok(None),
        ".." => Err("must not contain `..`: write the resolved path"),
        _ => Ok(Some(Segment::Literal(segment))),
    }
}
