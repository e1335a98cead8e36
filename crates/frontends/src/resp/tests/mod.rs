//! Tests without a socket: golden tables, every split, redis-cell's own cases, and the life of
//! connections.

mod cell;
mod checks;
mod golden;
mod keys;
mod kit;
mod life;
mod login;
mod properties;
mod splits;
mod transactions;
