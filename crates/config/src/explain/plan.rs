//! Describes rates that come from plans.

use super::{band, subject, words};
use crate::config::Config;
use tidegate_policy::documents::DocumentLocation;
use tidegate_policy::limit::Limit;
use tidegate_policy::plan::{RateOwner, UnknownSubject, UnsetShare};
use tidegate_policy::plan_source::{PlanOrigin, PlanSource};

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
            DocumentLocation::Redis { key, .. } => format!("the hash `{key}` of Redis"),
            DocumentLocation::Etcd(etcd) => format!("the keys below `{}` of etcd", etcd.prefix),
            DocumentLocation::MongoDb(there) => format!(
                "the collection `{}` of the database `{}` in MongoDB",
                there.collection, there.database
            ),
        },
        PlanOrigin::Inline(_) => "the configuration itself".to_owned(),
        PlanOrigin::Program => "the program itself".to_owned(),
    };
    let unset = match source.terms.unset {
        UnsetShare::Unlimited => "is not limited".to_owned(),
        UnsetShare::Refuse => "is refused".to_owned(),
        UnsetShare::Rate(rate) => format!("has {rate}"),
    };
    let read = match source.inline() {
        Some(_) => String::new(),
        None => format!(
            ", read every {} with a timeout of {}; if a read fails, the last good plans are used",
            words::time(source.refresh),
            words::time(source.timeout),
        ),
    };
    let rates: Vec<String> = source
        .terms
        .rates
        .iter()
        .map(|it| format!("`{it}`"))
        .collect();
    let rates = match rates.as_slice() {
        [] => String::new(),
        names => format!(
            "\n  They set rates besides that of requests: {}.",
            names.join(", ")
        ),
    };
    format!(
        "Plans `{}` come from {origin}{read}.{rates}\n  A subject {unset} if neither it, its plan \
         nor its group has a rate.",
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
    let rate = if plan.name.is_requests() {
        "Rate:".to_owned()
    } else {
        format!("Rate: `{}`", plan.name)
    };
    let what = match plan.of {
        RateOwner::Subject => format!("{rate} set by the plans `{name}` for the {whose}."),
        RateOwner::Group => {
            format!("{rate} the quota in the plans `{name}` for the group of the {whose}.")
        }
    };
    let zone = plan.counting.calendar.settings.zone.name();
    let calendar = format!(
        "Calendar windows: in the time zone of the subject, its group or its plan; {zone} where none is set."
    );
    let unknown = match plan.unknown {
        UnknownSubject::Unlimited => vec!["Unknown subjects are unlimited.".to_owned()],
        UnknownSubject::Refuse => vec!["Unknown subjects are refused.".to_owned()],
        UnknownSubject::Skip => vec!["The limit does not apply to unknown subjects.".to_owned()],
        UnknownSubject::Band => {
            let bands = limit.bands.iter();
            let bands = bands.map(|it| band::explain(it, limit.charge));
            bands.map(|it| format!("Unknown subjects: {it}")).collect()
        }
    };
    [vec![what, calendar], unknown].concat()
}
