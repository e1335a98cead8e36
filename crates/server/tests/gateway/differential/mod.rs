//! The same requests through nginx and through the gateway, to the same upstream: both ends must see
//! the same.
//!
//! What differs is written down with the case, line by line, and with a reason out of
//! [`difference`]; a difference that is gone fails just as a new one does. What differs always is in
//! [`view`]: names of headers in lower case, and the `Via` and `Forwarded` that nginx does not write.
//!
//! | module | what it is |
//! |---|---|
//! | `stage` | both proxies, and how a case is played |
//! | `view` | what both ends saw, as lines |
//! | `difference` | why something may differ |
//! | `requests`, `targets`, `bodies`, `answers`, `connections` | the corpus |

mod answers;
mod bodies;
mod connections;
mod difference;
mod requests;
mod stage;
mod targets;
mod view;
