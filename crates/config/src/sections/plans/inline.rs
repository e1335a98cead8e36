//! Plans in the configuration itself.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::syntax::{MapEntry, NodeKind, YamlNode};
use crate::tables::plans::INLINE;
use tidegate_policy::limit::Limit;
use tidegate_policy::plan::{PlanDocument, PlanErrors, PlanFormat, PlanTerms};
use tidegate_policy::plan_source::{InlinePlans, PlanSource};
use tidegate_policy::text::ConfigFault;

/// Reads plans and replaces the variables in them.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    terms: &PlanTerms,
) -> Option<InlinePlans> {
    let fields = reader.fields(value, &INLINE)?;
    for field in INLINE.fields {
        let section = fields.get(field.name);
        if let Some(section) = section.filter(|it| !matches!(it.node.kind, NodeKind::Map(_))) {
            reader.refuse_kind(&section, "a map from ids to rates or settings");
            return None;
        }
    }
    let tree = resolved(reader, value);
    // Subjects may be API keys. Errors give the line, so they need not name the subject.
    let document = PlanDocument::of_tree(&tree, PlanFormat::Tidegate, true);
    match document.and_then(|document| document.table(terms.clone())) {
        Ok(table) => Some(InlinePlans::new(table)),
        Err(errors) => {
            refuse(reader, value, &errors);
            None
        }
    }
}

/// Reports each rate of an inline plan that `limit`, whose rate is `value`, cannot count.
pub(crate) fn check(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    limit: &Limit,
    sources: &[PlanSource],
) {
    let Some(plan) = &limit.plan else {
        return;
    };
    let Some(table) = sources.get(plan.source).and_then(PlanSource::inline) else {
        return;
    };
    for (nth, rate) in table.rates(&plan.name).iter().enumerate() {
        let fits = limit.planned_band(*rate).map(drop);
        if let Err(why) = fits.and_then(|()| limit.planned_block(*rate).map(drop)) {
            let whose = table.owner_of_rate(&plan.name, nth);
            reader.error(value.spot(), ConfigFault::new(format!("{whose}: {why}")));
        }
    }
}

/// Returns the tree with its variables replaced. A value whose variable is missing is already reported
/// and counts as absent.
fn resolved(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> YamlNode {
    let kind = match &value.node.kind {
        NodeKind::Text(_) => reader.text(value).map_or(NodeKind::Null, NodeKind::Text),
        NodeKind::Map(entries) => {
            let entries = entries.iter().map(|entry| MapEntry {
                key: entry.key.clone(),
                value: resolved(reader, &value.child(&entry.key, &entry.value)),
            });
            NodeKind::Map(entries.collect())
        }
        other => other.clone(),
    };
    YamlNode {
        place: value.node.place,
        kind,
    }
}

fn refuse(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>, errors: &PlanErrors) {
    for message in errors.messages() {
        reader.error(value.spot(), ConfigFault::new(message.clone()));
    }
    if let Some(more) = errors.count().checked_sub(errors.messages().len())
        && more > 0
    {
        reader.error(value.spot(), ConfigFault::new(format!("and {more} more")));
    }
}
