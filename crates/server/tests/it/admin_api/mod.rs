//! The admin API, for administrators and for clients without a token.

/// A server with administrators.
mod kit;

/// Permissions: every route, every role, no token and an invalid one.
mod access;
/// The audit log.
mod audit;
/// Inspecting and resetting buckets.
mod buckets;
/// Budgets of a subject, and the command that reads them.
mod budgets;
/// Administrators with a client certificate.
mod certificates;
mod consumers;
/// Policies, limits, guards and routes: created, changed, assigned, removed.
mod documents;
/// Instances that share a store, and the version that each serves.
mod instances;
/// The members of a guard's list.
mod members;
/// Guards and routes: turned off and on, and shown.
mod modes;
mod openapi;
/// Changes with an unintended outcome, in the audit log.
mod outcomes;
/// The plans of subjects.
mod plans;
/// Read-only parts.
mod read_only;
/// Invalid calls.
mod refusals;
/// The OpenAPI document, checked against the server by schemathesis.
mod schemathesis;
/// Secrets in responses and in the audit log, and its fields besides changes.
mod secrets;
/// A source that can be made slow and silent.
mod slow;
/// The status of the server.
mod status;
/// Changes in flight during a shutdown.
mod stopping;
/// `tidegate token`.
mod token;
/// Objects that others refer to cannot be removed.
mod used;
/// Versions, and concurrent changes.
mod versions;
