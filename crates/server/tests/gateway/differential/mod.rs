//! The same requests through nginx and through the gateway, to the same upstream: both ends must see
//! the same.
//!
//! Each case lists its differences, line by line, with a reason of [`difference`]. A missing
//! difference fails like a new one. [`view`] removes the differences of all cases: the case of header
//! names, and the `Via` and `Forwarded` headers, which nginx does not send.
//!
//! | module | contents |
//! |---|---|
//! | `stage` | both proxies, and the replay of a case |
//! | `view` | what both ends saw, as lines |
//! | `difference` | the reasons for differences |
//! | `requests`, `targets`, `bodies`, `answers`, `connections` | the corpus |

mod answers;
mod bodies;
mod connections;
mod difference;
mod requests;
mod stage;
mod targets;
mod view;
