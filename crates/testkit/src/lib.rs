//! What Tidegate is held against: the [`model`], the [`vectors`] and the [`laws`].
//!
//! The model says what each algorithm means, in exact fractions and without haste; where a store
//! and the model differ, the store is wrong. The vectors are decisions that must come out to the
//! letter; where the model and a vector differ, the model is wrong. The laws are tests that every
//! store must pass.
//!
//! This crate is never published. The model uses no other crate of the workspace, so that a mistake
//! there cannot excuse itself here; the laws use `tidegate-core` alone, to speak to stores.
//!
//! ```
//! use tidegate_testkit::model::{ModelAlgorithm, ModelBucket, ModelQuota};
//!
//! let mut bucket = ModelBucket::new(ModelQuota {
//!     algorithm: ModelAlgorithm::TokenBucket,
//!     amount: 10,
//!     period_us: 1_000_000,
//!     burst: 1,
//!     overdraft: 0,
//! });
//! assert!(bucket.take(0, 1).allowed);
//! assert_eq!(bucket.take(1, 1).wait_us, Some(99_999));
//! ```

mod cases;
pub mod history;
pub mod laws;
pub mod model;
#[cfg(feature = "redis")]
pub mod redis;
pub mod shared_state;
pub mod vectors;

pub use cases::cases;
