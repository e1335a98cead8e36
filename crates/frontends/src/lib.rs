//! The frontends: each turns a protocol's requests into checks, and decisions into responses.
//!
//! | module | what it is |
//! |---|---|
//! | `http` | `POST /v1/check`, reservations, and the route to `auth` |
//! | `auth` | `/v1/auth`: forward-auth for proxies |
//! | `refuse` | the query of `/v1/auth` |
//! | `grpc` | Envoy's rate limit service, health and reflection over gRPC |
//! | `rls_json` | `POST /json` and `GET /healthcheck`, compatible with Envoy's own service |
//! | `gateway` | the reverse proxy |
//! | `resp` | the Redis protocol: `CL.THROTTLE`, `TG.CHECK` |
//! | `body` | a request's body, bounded in size and time |
//! | `listeners` | opening the listeners of all of these |
//! | `past` | decides requests of the past |
//! | `decider` | decides and observes, behind every frontend |
//! | `wire` | JSON and protobuf: check requests, responses, problems |
//! | `respond` | every HTTP status and header that the frontends send |

mod auth;
pub mod body;
pub mod decider;
pub mod gateway;
pub mod grpc;
pub mod http;
pub mod listeners;
pub mod past;
mod refuse;
pub mod resp;
pub mod respond;
mod rls_json;
pub mod wire;
