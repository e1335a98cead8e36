//! The rule of a router: its requests, as conditions.

use crate::draft::ConditionDraft;
use tidegate_policy::patterns::{HostPattern, PathPattern};

/// The most conditions of a rule.
const CONDITIONS_MAX: usize = 64;

/// A rule as conditions, of which one must match.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RouterRule {
    pub(super) conditions: Vec<ConditionDraft>,
    /// A path prefix that ends within a segment in Traefik.
    pub(super) open_prefix: Option<String>,
}

/// Reads a rule. The error is the part that has no counterpart.
pub(super) fn read(text: &str) -> Result<RouterRule, String> {
    let mut reader = RuleReader {
        rest: text,
        open_prefix: None,
        depth: 0,
    };
    let conditions = reader.any()?;
    match reader.rest.trim() {
        "" => Ok(RouterRule {
            conditions,
            open_prefix: reader.open_prefix,
        }),
        rest => Err(rest.to_owned()),
    }
}

struct RuleReader<'t> {
    rest: &'t str,
    open_prefix: Option<String>,
    /// The parentheses that are open.
    depth: usize,
}

/// The most parentheses inside each other.
const DEPTH_MAX: usize = 32;

impl<'t> RuleReader<'t> {
    fn take(&mut self, mark: &str) -> bool {
        match self.rest.trim_start().strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads parts joined by `||`.
    fn any(&mut self) -> Result<Vec<ConditionDraft>, String> {
        let mut all = self.every()?;
        while self.take("||") {
            all.extend(self.every()?);
        }
        Ok(all)
    }

    /// Reads parts joined by `&&`.
    fn every(&mut self) -> Result<Vec<ConditionDraft>, String> {
        let mut all = self.one()?;
        while self.take("&&") {
            let before = self.rest;
            let others = self.one()?;
            let pairs = all
                .iter()
                .flat_map(|a| others.iter().map(move |b| both(a, b)));
            let pairs: Option<Vec<ConditionDraft>> = pairs.collect();
            all = pairs
                .filter(|pairs| pairs.len() <= CONDITIONS_MAX)
                .ok_or_else(|| before.trim().to_owned())?;
        }
        Ok(all)
    }

    /// Reads a matcher, or a rule in parentheses.
    fn one(&mut self) -> Result<Vec<ConditionDraft>, String> {
        let before = self.rest.trim_start();
        if self.take("!") {
            return Err(before.to_owned());
        }
        if self.take("(") {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(before.to_owned());
            }
            let all = self.any()?;
            self.depth -= 1;
            return if self.take(")") {
                Ok(all)
            } else {
                Err(before.to_owned())
            };
        }
        let name = before.split('(').next().unwrap_or_default().trim();
        let fail = || before.to_owned();
        self.rest = before.get(name.len()..).unwrap_or_default();
        if !self.take("(") {
            return Err(fail());
        }
        let values = self.values().ok_or_else(fail)?;
        self.matcher(name, &values).ok_or_else(fail)
    }

    /// Reads the values of a matcher, in backticks or quotes, up to its parenthesis.
    fn values(&mut self) -> Option<Vec<&'t str>> {
        let mut values = Vec::new();
        loop {
            let text = self.rest.trim_start();
            let quote = text
                .chars()
                .next()
                .filter(|it| matches!(it, '`' | '"' | '\''))?;
            let (value, rest) = text.get(1..)?.split_once(quote)?;
            values.push(value);
            self.rest = rest;
            if self.take(")") {
                return Some(values);
            }
            if !self.take(",") {
                return None;
            }
        }
    }

    /// Returns the conditions of a matcher; `None` if they cannot be expressed.
    fn matcher(&mut self, name: &str, values: &[&str]) -> Option<Vec<ConditionDraft>> {
        let texts = || values.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let one = |condition: ConditionDraft| Some(vec![condition]);
        let default = ConditionDraft::default;
        match name {
            "Host" if values.iter().all(|it| HostPattern::parse(it).is_ok()) => {
                one(ConditionDraft {
                    hosts: texts(),
                    ..default()
                })
            }
            "Method" => one(ConditionDraft {
                methods: texts(),
                ..default()
            }),
            "ClientIP" => one(ConditionDraft {
                clients: texts(),
                ..default()
            }),
            "Header" | "Headers" => match values {
                [name, value] if !value.is_empty() => one(ConditionDraft {
                    header: Some(((*name).to_owned(), (*value).to_owned())),
                    ..default()
                }),
                _ => None,
            },
            "Path" | "PathPrefix" => {
                let mut all = Vec::new();
                for path in values {
                    // Templates of Traefik 2, such as `/{id:[0-9]+}`.
                    if path.contains(['{', '*']) {
                        return None;
                    }
                    let pattern = if name == "Path" {
                        format!("{path}$")
                    } else {
                        (*path).to_owned()
                    };
                    PathPattern::parse(&pattern).ok()?;
                    if name == "PathPrefix" && !path.ends_with('/') {
                        self.open_prefix = Some((*path).to_owned());
                    }
                    all.push(ConditionDraft {
                        path: (pattern != "/").then_some(pattern),
                        ..default()
                    });
                }
                Some(all)
            }
            _ => None,
        }
    }
}

/// Returns the condition that both are; `None` if a single one cannot express it.
fn both(a: &ConditionDraft, b: &ConditionDraft) -> Option<ConditionDraft> {
    let one_of = |a: &Vec<String>, b: &Vec<String>| match (a.is_empty(), b.is_empty()) {
        (_, true) => Some(a.clone()),
        (true, _) => Some(b.clone()),
        _ => None,
    };
    let is_twice =
        (a.path.is_some() && b.path.is_some()) || (a.header.is_some() && b.header.is_some());
    if is_twice {
        return None;
    }
    Some(ConditionDraft {
        hosts: one_of(&a.hosts, &b.hosts)?,
        methods: one_of(&a.methods, &b.methods)?,
        clients: one_of(&a.clients, &b.clients)?,
        path: a.path.clone().or_else(|| b.path.clone()),
        header: a.header.clone().or_else(|| b.header.clone()),
        attribute: None,
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn simple_rules_are_conditions() {
        let rule = read("Host(`a.example`) && (PathPrefix(`/api`) || Path(`/x`)) && Method(`GET`)");
        let conditions = rule.expect("it is simple").conditions;
        assert_eq!(conditions.len(), 2);
        assert_eq!(conditions[0].hosts, ["a.example"]);
        assert_eq!(conditions[0].path.as_deref(), Some("/api"));
        assert_eq!(conditions[1].path.as_deref(), Some("/x$"));
        assert_eq!(conditions[1].methods, ["GET"]);
    }

    #[test]
    fn other_rules_are_rejected() {
        for (text, part) in [
            ("!Host(`a`)", "!Host(`a`)"),
            ("Host(`a`) && PathRegexp(`^/x`)", "PathRegexp(`^/x`)"),
            ("PathPrefix(`/a`) && PathPrefix(`/b`)", "PathPrefix(`/b`)"),
            ("Path(`/{id:[0-9]+}`)", "Path(`/{id:[0-9]+}`)"),
            ("Host(`a`) Path(`/b`)", "Path(`/b`)"),
            ("Host(a)", "Host(a)"),
            ("Query(`a`, `b`)", "Query(`a`, `b`)"),
            ("Host(`a`", "Host(`a`"),
        ] {
            assert_eq!(read(text).err().as_deref(), Some(part), "{text}");
        }
    }
}
