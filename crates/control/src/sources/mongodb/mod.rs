//! Plans in collections of `MongoDB`.
//!
//! Three collections are read completely: plans, groups, subjects. Only the relevant fields are
//! requested. Numbers may have any width, and ids may be `ObjectId`s, texts or numbers; a request
//! identifies a subject by the text form of its id.

use crate::mongo::{connect, shown};
use futures_util::future::try_join;
use mongodb::bson::{Document as Fields, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mongodb::{Client, Database};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate::LoadedPlans;
use tidegate::plan::{Collections, PlanDocument};
use tidegate_policy::text::Secret;

/// The maximum number of documents of a collection.
const DOCUMENTS_MAX: usize = 10_000_000;

/// The parameters of a load.
pub(super) struct CollectionQuery<'a> {
    pub(super) url: &'a Secret,
    pub(super) database: &'a str,
    pub(super) collections: &'a Collections,
    pub(super) time_max: Duration,
}

/// Clients of servers, each with its connections: as many as the configurations so far name.
#[derive(Clone, Default)]
pub(super) struct Clients(Arc<Mutex<Vec<(Secret, Client)>>>);

impl Clients {
    /// Loads the collections.
    pub(super) async fn load(
        &self,
        place: &CollectionQuery<'_>,
        hides_subjects: bool,
    ) -> Result<LoadedPlans, String> {
        let client = self.client(place).await?;
        let database = client.database(place.database);
        let names = place.collections;
        let wants = RequestedFields::of(names);
        let (groups, subjects) = try_join(
            wants.read(&database, &names.groups),
            wants.read(&database, &names.subjects),
        )
        .await?;
        // Last: a plan that was written before the subjects that name it is never missing.
        let plans = wants.read(&database, &names.plans).await?;
        let names = names.clone();
        let document = tidegate_net::tasks::blocking(move || {
            let mut document = PlanDocument::default();
            if hides_subjects {
                document = document.hiding_subjects();
            }
            let reader = DocumentReader { names: &names };
            for entry in &plans {
                reader.add(entry, "_id", &mut document, PlanDocument::plan);
            }
            for entry in &groups {
                reader.add(entry, "_id", &mut document, PlanDocument::group);
            }
            for entry in &subjects {
                reader.add(
                    entry,
                    &names.subject_id,
                    &mut document,
                    PlanDocument::subject,
                );
            }
            document
        });
        let document = document.await.ok_or("it did not finish")?;
        Ok(LoadedPlans::Changed {
            document,
            tag: None,
        })
    }

    async fn client(&self, place: &CollectionQuery<'_>) -> Result<Client, String> {
        let known = |kept: &Vec<(Secret, Client)>| {
            let same = kept.iter().find(|(url, _)| url == place.url);
            same.map(|(_, client)| client.clone())
        };
        if let Some(client) = known(&self.0.lock()) {
            return Ok(client);
        }
        let client = connect(place.url, place.time_max).await?;
        let mut kept = self.0.lock();
        if let Some(client) = known(&kept) {
            return Ok(client);
        }
        kept.push((place.url.clone(), client.clone()));
        Ok(client)
    }
}

// By hand: URLs may contain passwords.
impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clients")
            .field(&self.0.lock().len())
            .finish()
    }
}

/// The fields to request.
struct RequestedFields(Fields);

impl RequestedFields {
    fn of(names: &Collections) -> Self {
        let mut fields = doc! { "_id": 1 };
        let wanted = [
            &names.settings,
            &names.plan_of_group,
            &names.group_of_subject,
            &names.subject_id,
        ];
        for name in wanted.into_iter().chain(&names.quota) {
            fields.insert(name.as_str(), 1);
        }
        Self(fields)
    }

    /// Reads all documents of a collection.
    async fn read(&self, database: &Database, name: &str) -> Result<Vec<RawDocumentBuf>, String> {
        let wrong = |error| format!("collection `{name}`: {}", shown(error));
        let collection = database.collection::<RawDocumentBuf>(name);
        let found = collection.find(doc! {}).projection(self.0.clone()).await;
        let mut cursor = found.map_err(wrong)?;
        let mut documents = Vec::new();
        while cursor.advance().await.map_err(wrong)? {
            if documents.len() == DOCUMENTS_MAX {
                return Err(format!("collection `{name}` has more than {DOCUMENTS_MAX}"));
            }
            documents.push(cursor.current().to_owned());
        }
        Ok(documents)
    }
}

/// Reads documents into plans.
struct DocumentReader<'a> {
    names: &'a Collections,
}

impl DocumentReader<'_> {
    /// Adds a document.
    fn add(
        &self,
        entry: &RawDocument,
        id: &str,
        document: &mut PlanDocument,
        add: fn(&mut PlanDocument, &str, &[(&str, &str)]),
    ) {
        // No request can name a subject without such an id.
        let Some(id) = value(entry, id) else {
            return;
        };
        let names = self.names;
        let mut fields: Vec<(&str, String)> = Vec::new();
        settings(
            entry,
            &names.settings,
            names,
            ["amount", "period"],
            &mut fields,
        );
        if let Some(quota) = &names.quota {
            settings(
                entry,
                quota,
                names,
                ["quota.amount", "quota.period"],
                &mut fields,
            );
        }
        let plan = value(entry, &names.plan_of_group);
        let group = value(entry, &names.group_of_subject);
        // Fields that a collection does not have are not read.
        let is =
            |other: fn(&mut PlanDocument, &str, &[(&str, &str)])| std::ptr::fn_addr_eq(add, other);
        if is(PlanDocument::group) {
            fields.extend(plan.map(|plan| ("plan", plan)));
        } else if is(PlanDocument::subject) {
            fields.extend(group.map(|group| ("group", group)));
        }
        let fields: Vec<(&str, &str)> = fields
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        add(document, &id, &fields);
    }
}

/// Returns the settings under `field`, if there are any, as fields of these names.
fn settings(
    entry: &RawDocument,
    field: &str,
    names: &Collections,
    [amount, period]: [&'static str; 2],
    fields: &mut Vec<(&'static str, String)>,
) {
    if let Ok(Some(RawBsonRef::Document(settings))) = entry.get(field) {
        fields.extend(value(settings, &names.amount).map(|text| (amount, text)));
        fields.extend(value(settings, &names.period).map(|text| (period, text)));
    }
}

/// Returns a single value as text; `None` if it is missing.
fn value(document: &RawDocument, field: &str) -> Option<String> {
    match document.get(field).ok()?? {
        RawBsonRef::Null | RawBsonRef::Undefined => None,
        RawBsonRef::String(text) | RawBsonRef::Symbol(text) => Some(text.to_owned()),
        RawBsonRef::Int32(number) => Some(number.to_string()),
        RawBsonRef::Int64(number) => Some(number.to_string()),
        RawBsonRef::Double(number) => Some(number.to_string()),
        RawBsonRef::Decimal128(number) => Some(number.to_string()),
        RawBsonRef::ObjectId(id) => Some(id.to_hex()),
        RawBsonRef::Boolean(flag) => Some(flag.to_string()),
        // The type of the value, so that the error message is useful.
        other => Some(format!("{:?}", other.element_type())),
    }
}

#[cfg(test)]
mod tests;
