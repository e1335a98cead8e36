//! Finds the route of a request, and describes routes and calls.

pub(super) mod call;
pub(super) mod path;
pub(super) mod route;
