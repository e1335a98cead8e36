//! Reloads while requests are in flight.
//!
//! | module | contents |
//! |---|---|
//! | `kit` | a gateway that can be reloaded, and upstreams that send their names |
//! | `load` | no request fails, and none mixes two configurations |
//! | `keeps` | state that outlives a reload, and state that does not |
//! | `refused` | a rejected configuration changes nothing |
//! | `signal` | SIGHUP and the log |

mod keeps;
mod kit;
mod load;
mod refused;
mod signal;
