//! Former names of fields. The error for one of them names the field to use.

use crate::language::words::one_of;

/// A former field, and the fields that replace it. Paths have `[]` for an item of a list.
pub(crate) struct RenamedField {
    pub(crate) old: &'static str,
    /// The replacements, such as `store.redis.prefix` or `guards[].mode: off`.
    pub(crate) new: &'static [&'static str],
}

/// Every former field.
pub(crate) static RENAMED: &[RenamedField] = &[
    renamed("guards[].refuse", &["guards[].deny"]),
    renamed("guards[].exempt", &["guards[].allow"]),
    renamed("guards[].enabled", &["guards[].mode: off"]),
    renamed("routes[].enabled", &["routes[].mode: off"]),
    renamed("store.mode", &["store.redis.topology"]),
    renamed("store.master", &["store.redis.master"]),
    renamed("store.user", &["store.redis.user"]),
    renamed("store.password", &["store.redis.password"]),
    renamed("store.password_file", &["store.redis.password_file"]),
    renamed("store.sentinel_user", &["store.redis.sentinel_user"]),
    renamed(
        "store.sentinel_password",
        &["store.redis.sentinel_password"],
    ),
    renamed(
        "store.sentinel_password_file",
        &["store.redis.sentinel_password_file"],
    ),
    renamed("store.tls", &["store.redis.tls"]),
    renamed("store.connections", &["store.redis.connections"]),
    renamed("store.connect_timeout", &["store.redis.connect_timeout"]),
    renamed("store.retries", &["store.redis.retries"]),
    renamed("store.required_at_start", &["store.redis.required"]),
    renamed("store.prefix", &["store.redis.prefix"]),
    renamed("store.tag", &["store.redis.tag"]),
    renamed("store.layout", &["store.redis.layout"]),
    renamed("store.template", &["store.redis.template"]),
    renamed("store.key_names", &["store.redis.key_names"]),
    renamed("store.deny_cache", &["store.redis.deny_cache"]),
    renamed("store.urls", &["store.url"]),
    renamed("store.redis.tls.ca_file", &["store.redis.tls.ca"]),
    renamed("store.redis.tls.cert_file", &["store.redis.tls.cert"]),
    renamed("store.redis.tls.key_file", &["store.redis.tls.key"]),
    renamed(
        "plans[].from",
        &[
            "plans[].file",
            "plans[].http",
            "plans[].mongodb",
            "plans[].redis",
            "plans[].etcd",
            "plans[].inline",
        ],
    ),
    renamed("sources[].keeper.endpoint", &["sources[].keeper.path"]),
    renamed("traces.endpoint", &["traces.url"]),
    renamed("sources[].keeper.refresh", &["sources[].refresh"]),
    renamed("sources[].keeper.timeout", &["sources[].timeout"]),
    renamed("sources[].http.refresh", &["sources[].refresh"]),
    renamed("sources[].http.timeout", &["sources[].timeout"]),
    renamed("sources[].redis.refresh", &["sources[].refresh"]),
    renamed("sources[].redis.timeout", &["sources[].timeout"]),
    renamed(
        "sources[].mongodb.documents",
        &["sources[].mongodb.collection"],
    ),
    renamed("sources[].mongodb.refresh", &["sources[].refresh"]),
    renamed("sources[].mongodb.timeout", &["sources[].timeout"]),
    renamed("sources[].etcd.refresh", &["sources[].refresh"]),
    renamed("sources[].etcd.timeout", &["sources[].timeout"]),
    renamed("routes[].id", &["routes[].name"]),
];

const fn renamed(old: &'static str, new: &'static [&'static str]) -> RenamedField {
    RenamedField { old, new }
}

/// Returns the entry for the field at `path`, such as `guards[0].refuse`, if it is a former one.
pub(crate) fn find(path: &str) -> Option<&'static RenamedField> {
    let path = without_indexes(path);
    RENAMED.iter().find(|field| field.old == path)
}

/// Replaces the indexes of list items: `guards[0].refuse` becomes `guards[].refuse`.
fn without_indexes(path: &str) -> String {
    let mut parts = path.split('[');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str("[]");
        plain.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
    }
    plain
}

impl RenamedField {
    /// Returns the help for the error: the fields to use. A field of the same map goes by its name alone.
    pub(crate) fn help(&self) -> String {
        let new: Vec<&str> = self
            .new
            .iter()
            .map(|path| self.path_in_same_map(path))
            .collect();
        format!("use {}", one_of(&new))
    }

    /// Returns the names of the fields of the same map that the replacements are, or are in.
    pub(crate) fn meant(&self) -> impl Iterator<Item = &'static str> {
        self.new.iter().filter_map(|path| {
            let rest = path.strip_prefix(self.parent())?;
            let rest = rest.strip_prefix('.').unwrap_or(rest);
            rest.split(['.', '[', ':']).next()
        })
    }

    /// Returns `path` as it is written in the map of the old field, or as it is if it is in another one.
    fn path_in_same_map(&self, path: &'static str) -> &'static str {
        let rest = path
            .strip_prefix(self.parent())
            .filter(|_| !self.parent().is_empty());
        let rest = rest.and_then(|rest| rest.strip_prefix('.'));
        rest.filter(|rest| !rest.contains('.')).unwrap_or(path)
    }

    /// Returns the path of the map that had the old field.
    fn parent(&self) -> &'static str {
        self.old.rsplit_once('.').map_or("", |(parent, _)| parent)
    }
}

#[cfg(test)]
mod tests {
    use super::{RENAMED, without_indexes};
    use crate::config::CONFIG;
    use crate::config::Config;
    use crate::language::table::{FieldTable, Shape};

    /// Returns true if the language has a field at `path`.
    fn is_field(path: &str) -> bool {
        let names: Vec<&str> = path
            .split('.')
            .map(|it| it.trim_end_matches("[]"))
            .collect();
        in_table(&CONFIG, &names)
    }

    fn in_table(table: &FieldTable, names: &[&str]) -> bool {
        let Some((first, rest)) = names.split_first() else {
            return true;
        };
        let mut fields = table.fields.iter();
        fields
            .any(|field| field.name == *first && (rest.is_empty() || in_shape(&field.shape, rest)))
    }

    fn in_shape(shape: &Shape, names: &[&str]) -> bool {
        match shape {
            Shape::Map(table) => in_table(table, names),
            Shape::List(shape) | Shape::Named(shape) => in_shape(shape, names),
            Shape::Either(shapes) => shapes.iter().any(|shape| in_shape(shape, names)),
            _ => false,
        }
    }

    /// Returns a configuration with a field at `path`.
    fn with_field(path: &str) -> String {
        let mut text = "x".to_owned();
        for part in path.rsplit('.') {
            text = match part.strip_suffix("[]") {
                Some(name) => format!("{{ {name}: [{text}] }}"),
                None => format!("{{ {part}: {text} }}"),
            };
        }
        text
    }

    #[test]
    fn old_fields_are_unknown_and_new_ones_exist() {
        for field in RENAMED {
            assert!(!is_field(field.old), "{} is still a field", field.old);
            for new in field.new {
                let path = new.split(':').next().unwrap();
                assert!(is_field(path), "{new} is no field");
            }
        }
    }

    #[test]
    fn the_error_for_an_old_field_names_the_new_one() {
        for field in RENAMED {
            let text = with_field(field.old);
            let errors = Config::from_yaml(&text).unwrap_err();
            let mut about = errors.problems().iter();
            let problem = about
                .find(|it| without_indexes(it.path()) == field.old)
                .unwrap_or_else(|| panic!("{text}: {errors}"));
            let help = problem.help().unwrap_or_default();
            for new in field.new {
                let leaf = new.rsplit('.').next().unwrap();
                assert!(help.contains(leaf), "{}: {help}", field.old);
            }
        }
    }
}
