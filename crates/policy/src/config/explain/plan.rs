//! Describes rates that come from plans.

use super::{band, subject, words};
use crate::config::Config;
use crate::limit::Limit;
use crate::plan::{PlanOrigin, PlanSource, RateOwner, Unknown, Unset};
use crate::source::ShelfPlace;

/// Describes the source of plans, and the rate of subjects that it does not know.
pub(super) fn source(source: &PlanSource) -> String {
    let origin = match &source.origin {
        PlanOrigin::File(path) => format!("the file `{path}`"),
        PlanOrigin::Http { url, .. } => format!("`{url}`"),
        PlanOrigin::MongoDb {
            database,
            collections,
            ..
        } => format!(
            "the collections `{}`, `{}` and `{}` of the database `{database}` in MongoDB",
            collections.plans, collections.groups, collections.subjects
        ),
        PlanOrigin::Shelf(shelf) => match &shelf.place {
            ShelfPlace::Redis { key, .. } => format!("the hash `{key}` of Redis"),
            ShelfPlace::Etcd(etcd) => format!("the keys below `{}` of etcd", etcd.prefix),
            ShelfPlace::MongoDb(there) => format!(
                "the collection `{}` of the database `{}` in MongoDB",
                there.collection, there.database
            ),
        },
        PlanOrigin::Inline(_) => "the configuration itself".to_owned(),
        PlanOrigin::Program => "the program itself".to_owned(),
    };
    let unset = match source.unset {
        Unset::Unlimited => "is not limited".to_owned(),
        Unset::Refuse => "is refused".to_owned(),
        Unset::Rate(rate) => format!("has {rate}"),
    };
    let read = match source.inline() {
        Some(_) => String::new(),
        None => format!(
            ", read every {}, with {} to answer; what was read last is kept while it does not",
            words::time(source.refresh),
            words::time(source.timeout),
        ),
    };
    format!(
        "Plans `{}` come from {origin}{read}.\n  A subject of which no plan, no group and no word of its own says how much {unset}.",
        source.name,
    )
}

/// Describes the rate of a limit that a plan sets.
pub(super) fn rate(config: &Config, limit: &Limit) -> Vec<String> {
    let Some(plan) = &limit.plan else {
        return Vec::new();
    };
    let source = config.plans.get(plan.source);
    let name = source.map_or("", |source| source.name.as_str());
    let whose = subject::noun(&plan.subject, config.client.ipv6_prefix);
    let what = match plan.of {
        RateOwner::Subject => format!("How much: as the plans `{name}` say for the {whose}."),
        RateOwner::Group => {
            format!(
                "How much: the quota, as the plans `{name}` say it, of the group that the {whose} belongs to."
            )
        }
    };
    let unknown = match plan.unknown {
        Unknown::Unlimited => vec!["Whoever they do not know is not limited.".to_owned()],
        Unknown::Refuse => vec!["Whoever they do not know is refused.".to_owned()],
        Unknown::Skip => vec!["To whoever they do not know it does not apply.".to_owned()],
        Unknown::Band => {
            let bands = limit.bands.iter();
            let bands = bands.map(|it| band::explain(it, limit.charge));
            bands
                .map(|it| format!("Whoever they do not know: {it}"))
                .collect()
        }
    };
    [vec![what], unknown].concat()
}
