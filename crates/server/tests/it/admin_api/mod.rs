//! The admin API, as administrators and strangers meet it.

/// A server with somebody to administrate it.
mod kit;

/// Who may call what: every route, every role, no token and a wrong one.
mod access;
/// Who changed what, written down.
mod audit;
/// Looking into buckets, and resetting them.
mod buckets;
/// Somebody who is known by a certificate.
mod certificates;
mod consumers;
/// Policies, limits, guards and routes: made, changed, assigned, removed.
mod documents;
/// Instances that share a store, and what each of them serves.
mod instances;
/// Who is on the list of a guard.
mod members;
/// Guards and routes: turned off and on, and shown as they are.
mod modes;
/// What came of changes that did not come out as they were meant, written down.
mod outcomes;
/// What the subjects of plans have.
mod plans;
/// What cannot be changed from here.
mod read_only;
/// Calls that are not as they should be.
mod refusals;
/// The OpenAPI document, held against the server by a program of others.
mod schemathesis;
/// Secrets in what is shown and written down, and what is written down beside changes.
mod secrets;
/// A source that can be made slow and deaf.
mod slow;
/// How the server is.
mod status;
/// Changes that are under way when the server is told to stop.
mod stopping;
/// `tidegate token`.
mod token;
/// What something else needs, and so stays.
mod used;
/// What was seen, and has changed since.
mod versions;
