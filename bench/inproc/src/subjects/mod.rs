//! The candidates, one file each.

pub(crate) mod floor;
pub(crate) mod governor;
pub(crate) mod limitador;
pub(crate) mod throttlecrab;
#[cfg(feature = "tidegate")]
pub(crate) mod tidegate;
