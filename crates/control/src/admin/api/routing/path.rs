//! Finds the routes at a path.

use super::route::{AdminRoute, BASE, RouteMethod, TEXT_MAX, longest, named};
use crate::admin::api::problem::AdminProblem;

/// The routes at a path, for all methods, and the values of the path parameters.
#[derive(Debug)]
pub(in crate::admin::api) struct RouteMatches {
    routes: Vec<&'static AdminRoute>,
    /// Still percent-encoded.
    params: Vec<String>,
}

/// Returns the routes at `path`, if there are any.
pub(in crate::admin::api) fn find(
    routes: &'static [AdminRoute],
    path: &str,
) -> Option<RouteMatches> {
    let rest = path.strip_prefix(BASE)?;
    let segments: Vec<&str> = rest.split('/').collect();
    // If several match, the one with the fewest parameters wins.
    let matching = routes.iter().filter_map(|route| {
        let params = matches(route.path, &segments)?;
        Some((params.len(), route, params))
    });
    let mut place: Option<(usize, RouteMatches)> = None;
    for (braces, route, params) in matching {
        match &mut place {
            Some((fewest, place)) if *fewest == braces => place.routes.push(route),
            Some((fewest, _)) if *fewest < braces => {}
            _ => {
                let routes = vec![route];
                place = Some((braces, RouteMatches { routes, params }));
            }
        }
    }
    place.map(|(_, place)| place)
}

fn matches(template: &'static str, segments: &[&str]) -> Option<Vec<String>> {
    let mut params = Vec::new();
    let mut given = segments.iter();
    for wanted in template.split('/') {
        let segment = *given.next()?;
        match named(wanted) {
            Some(_) if segment.is_empty() => return None,
            Some(_) => params.push(segment.to_owned()),
            None if wanted == segment => {}
            None => return None,
        }
    }
    given.next().is_none().then_some(params)
}

impl RouteMatches {
    /// Returns the route for a method.
    pub(in crate::admin::api) fn by(
        &self,
        verb: Option<RouteMethod>,
    ) -> Option<&'static AdminRoute> {
        let is_it = |route: &&&AdminRoute| Some(route.verb) == verb;
        self.routes.iter().find(is_it).copied()
    }

    /// Returns the available methods, for the `Allow` header.
    pub(in crate::admin::api) fn allowed(&self) -> String {
        let mut verbs = Vec::new();
        for route in &self.routes {
            verbs.push(route.verb.as_str());
            if route.verb == RouteMethod::Get {
                verbs.push("HEAD");
            }
        }
        verbs.join(", ")
    }

    /// Returns the values of the path parameters of `route`, each decoded once.
    pub(in crate::admin::api) fn params(
        self,
        route: &AdminRoute,
    ) -> Result<Vec<(&'static str, String)>, AdminProblem> {
        let named = route.params().zip(self.params);
        named
            .map(|(name, text)| {
                let decoded = decode(&text, false);
                let is_short = |text: &String| text.len() <= longest(name);
                let decoded = decoded.filter(|text| is_sound(text) && is_short(text));
                let why = "it is not well encoded, too long, or holds control characters";
                let bad = || AdminProblem::malformed(&format!("path.{name}"), why);
                Ok((name, decoded.ok_or_else(bad)?))
            })
            .collect()
    }
}

/// Returns true if a text is a valid name.
pub(in crate::admin::api) fn is_sound(text: &str) -> bool {
    !text.is_empty() && text.len() <= TEXT_MAX && !text.chars().any(char::is_control)
}

/// Decodes percent-encoding. A plus is a space in a query.
pub(in crate::admin::api) fn decode(text: &str, is_query: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'%' => {
                let (digits, after) = after.split_at_checked(2)?;
                let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
                let value = digit(0)?.checked_mul(16)?.checked_add(digit(1)?)?;
                bytes.push(u8::try_from(value).ok()?);
                rest = after;
            }
            b'+' if is_query => bytes.push(b' '),
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Percent-encodes text as one segment of a path.
pub(in crate::admin::api) fn encode(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            write!(encoded, "%{byte:02X}").ok();
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::api::routes;

    fn id(verb: RouteMethod, path: &str) -> Option<&'static str> {
        find(routes::all(), path)?
            .by(Some(verb))
            .map(|route| route.id)
    }

    #[test]
    fn a_path_matches_one_route() {
        for (verb, path, expected) in [
            (RouteMethod::Get, "/admin/v1/policies", Some("listPolicies")),
            (RouteMethod::Get, "/admin/v1/policies/a", Some("getPolicy")),
            (
                RouteMethod::Get,
                "/admin/v1/policies/a%2Fb",
                Some("getPolicy"),
            ),
            (
                RouteMethod::Get,
                "/admin/v1/policies/a/limits/b",
                Some("getLimit"),
            ),
            (RouteMethod::Get, "/admin/v1/policies/", None),
            (RouteMethod::Get, "/admin/v1/policies/a/b", None),
            (RouteMethod::Get, "/admin/v1", None),
            (RouteMethod::Get, "/admin/v2/policies", None),
            (RouteMethod::Put, "/admin/v1/policies", None),
        ] {
            assert_eq!(id(verb, path), expected, "{path}");
        }
    }

    #[test]
    fn no_two_routes_are_the_same_and_no_two_ids() {
        let mut places: Vec<String> = routes::all().iter().map(|it| format!("{it:?}")).collect();
        let mut ids: Vec<&str> = routes::all().iter().map(|it| it.id).collect();
        let count = places.len();
        places.sort_unstable();
        places.dedup();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((places.len(), ids.len()), (count, count));
    }

    #[test]
    fn escapes_in_paths_are_decoded_once() {
        assert_eq!(decode("10.0.0.0%2F8", false).as_deref(), Some("10.0.0.0/8"));
        assert_eq!(decode("%252F", false).as_deref(), Some("%2F"));
        assert_eq!(decode("a+b", false).as_deref(), Some("a+b"));
        assert_eq!(decode("a+b", true).as_deref(), Some("a b"));
        for bad in ["%", "%4", "%zz", "%ff", "%+1"] {
            assert_eq!(decode(bad, false), None, "{bad}");
        }
        let name = "a/b c%ü";
        assert_eq!(decode(&encode(name), false).as_deref(), Some(name));
    }
}
