//! Without a socket: golden tables, every split, and redis-cell's own cases.

mod cell;
mod checks;
mod golden;
mod kit;
mod login;
mod properties;
mod splits;
