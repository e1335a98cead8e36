//! Reloading while requests are under way.
//!
//! | module | what it is |
//! |---|---|
//! | `kit` | a gateway that can be reloaded, and upstreams that tell who they are |
//! | `load` | no request fails, and none is answered by halves of two configurations |
//! | `keeps` | what outlives a reload, and what does not |
//! | `refused` | what is not served changes nothing |
//! | `signal` | SIGHUP, and what the log says |

mod keeps;
mod kit;
mod load;
mod refused;
mod signal;
