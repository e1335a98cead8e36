//! Envoy, the program, the application, the client.

/// The program, on several stores.
pub(crate) mod tidegate;

/// Everything that runs for a test.
mod site;

#[path = "../../proxies/kit/application.rs"]
pub(crate) mod application;
#[path = "../../it/kit/client.rs"]
#[expect(
    dead_code,
    reason = "shared with other test programs, which need all of it"
)]
mod client;
#[path = "../../proxies/kit/folder.rs"]
#[expect(
    dead_code,
    reason = "shared with another test program, which needs all of it"
)]
mod folder;
#[path = "../../ratelimit/kit/programs.rs"]
#[expect(
    dead_code,
    reason = "shared with another test program, which starts another one"
)]
pub(crate) mod programs;

pub(crate) use client::Reply;
pub(crate) use folder::Folder;
pub(crate) use site::{Site, SiteOptions};
