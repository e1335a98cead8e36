//! The query of a call: only parameters that the route declares, each at most once, each validated.
//!
//! An unknown parameter is an error that lists the known ones: a misspelt filter would return everything.
//! All errors of a query are reported together.

use super::problem::AdminProblem;
use super::routing::path::{decode, is_sound};
use super::routing::route::{Param, ParamKind};

/// The parameters of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(&'static str, QueryValue)>);

#[derive(Clone, Debug)]
enum QueryValue {
    Whole(u64),
    Text(String),
}

impl Query {
    /// Parses a query that may have these parameters. Reports all errors together.
    pub(super) fn read(text: Option<&str>, params: &'static [Param]) -> Result<Self, AdminProblem> {
        let mut values: Vec<(&'static str, QueryValue)> = Vec::new();
        let mut wrong = AdminProblem::malformed_query();
        let pairs = text.unwrap_or_default().split('&');
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name, true).unwrap_or_default();
            let Some(param) = params.iter().find(|param| param.name == name) else {
                wrong = wrong.with("query", unknown(&name, params));
                continue;
            };
            let place = format!("query.{}", param.name);
            if values.iter().any(|(other, _)| *other == param.name) {
                wrong = wrong.with(&place, "it is a duplicate");
                continue;
            }
            match decode(value, true).map(|value| param.read(value)) {
                Some(Ok(value)) => values.push((param.name, value)),
                Some(Err(why)) => wrong = wrong.with(&place, why),
                None => wrong = wrong.with(&place, "it is not well encoded"),
            }
        }
        if wrong.has_errors() {
            return Err(wrong);
        }
        for param in params {
            let is_told = values.iter().any(|(name, _)| *name == param.name);
            if let (ParamKind::Whole(_, _, default), false) = (&param.kind, is_told) {
                values.push((param.name, QueryValue::Whole(*default)));
            }
        }
        Ok(Self(values))
    }

    /// Returns a whole number, or its default if it is missing.
    pub(super) fn whole(&self, name: &str) -> usize {
        let value = self.0.iter().find(|(other, _)| *other == name);
        match value {
            Some((_, QueryValue::Whole(number))) => usize::try_from(*number).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// Returns a text, if present.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(other, _)| *other == name);
        match value {
            Some((_, QueryValue::Text(text))) => Some(text),
            _ => None,
        }
    }
}

impl Param {
    fn read(&self, value: String) -> Result<QueryValue, String> {
        match &self.kind {
            ParamKind::Whole(from, to, _) => {
                let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
                let number = value.parse().ok().filter(|_| is_plain);
                let number = number.filter(|number| (from..=to).contains(&number));
                let wrong = || format!("expected a whole number from {from} to {to}");
                number.map(QueryValue::Whole).ok_or_else(wrong)
            }
            ParamKind::Text if is_sound(&value) => Ok(QueryValue::Text(value)),
            ParamKind::Text => Err("it is empty, too long, or holds control characters".to_owned()),
            ParamKind::Word(words) if words.contains(&value.as_str()) => {
                Ok(QueryValue::Text(value))
            }
            ParamKind::Word(words) => Err(format!("expected one of {}", words.join(", "))),
        }
    }
}

fn unknown(name: &str, params: &[Param]) -> String {
    let known: Vec<&str> = params.iter().map(|param| param.name).collect();
    let name = tidegate_frontends::wire::fault::quote(name);
    match known.as_slice() {
        [] => format!("there is no parameter {name}, nor any other"),
        known => format!(
            "there is no parameter {name}; there is {}",
            known.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PARAMS: [Param; 3] = [
        Param {
            name: "limit",
            kind: ParamKind::Whole(1, 500, 50),
            about: "",
        },
        Param {
            name: "name",
            kind: ParamKind::Text,
            about: "",
        },
        Param {
            name: "mode",
            kind: ParamKind::Word(&["on", "off"]),
            about: "",
        },
    ];

    #[test]
    fn query_parameters_are_parsed_or_take_their_defaults() {
        let query = Query::read(Some("name=a%20b+c&mode=off"), &PARAMS).unwrap();
        assert_eq!(query.whole("limit"), 50);
        assert_eq!(query.text("name"), Some("a b c"));
        assert_eq!(query.text("mode"), Some("off"));
        let query = Query::read(None, &PARAMS).unwrap();
        assert_eq!(query.text("name"), None);
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let wrong = Query::read(Some("limit=0&name=&mode=on&mode=on&x=1&%zz=1"), &PARAMS);
        let wrong = wrong.unwrap_err();
        let places: Vec<&str> = wrong.places().collect();
        let expected = ["query.limit", "query.name", "query.mode", "query", "query"];
        assert_eq!(places, expected);
        for bad in [
            "limit=+1",
            "limit=501",
            "limit=",
            "limit=99999999999999999999",
        ] {
            assert!(Query::read(Some(bad), &PARAMS).is_err(), "{bad}");
        }
    }
}
