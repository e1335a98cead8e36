//! Blocks: closing a limit to a subject for a fixed time after a refusal.

use super::{Algorithm, Align, Quota, QuotaError};

/// Label of the block's band. No configured band can have it: their names contain no `#`.
const LABEL: &str = "#block";

/// Label of the block's band in shadow mode. A separate band, so that enforcing a limit starts
/// without blocked subjects.
const SHADOW_LABEL: &str = "#shadow-block";

/// Algorithm of blocks: a window of one unit that opens with the first refusal.
const OPENED_BY_A_REFUSAL: Algorithm = Algorithm::FixedWindow(Align::FirstRequest);

impl Quota {
    /// Returns the quota of an [`Op::Block`](crate::Op::Block), under the name of its limit's
    /// bucket: after one refusal the limit is closed for `length_us` microseconds. All lengths are
    /// the same band.
    ///
    /// # Errors
    ///
    /// [`QuotaError::NoPeriod`] if the length is 0, [`QuotaError::PeriodTooLong`] if it is 2^53 or
    /// more.
    ///
    /// ```
    /// use tidegate_core::{Ask, Bucket, Op, Quota, Timestamp, step};
    ///
    /// let (quota, block) = (Quota::new(1, 1_000_000).build()?, Quota::block(300_000_000)?);
    /// let asks = [
    ///     Ask::take(b"a", &quota, 1),
    ///     Ask { op: Op::Block, ..Ask::look(b"a", &block) },
    /// ];
    /// let mut buckets = [Bucket::new(&quota), Bucket::new(&block)];
    /// let mut passes = |ms: u64| {
    ///     let now = Timestamp::from_millis(1_700_000_000_000 + ms);
    ///     step::decide(&asks, &[0, 1], &mut buckets, now).passed
    /// };
    /// assert!(passes(0));
    /// assert!(!passes(1), "too soon, and blocked from now on");
    /// assert!(!passes(300_000));
    /// assert!(passes(300_001));
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn block(length_us: u64) -> Result<Self, QuotaError> {
        Self::block_named(LABEL, length_us)
    }

    /// Returns the same for a limit in shadow mode: what would have been a block. No enforced limit
    /// reads it.
    ///
    /// # Errors
    ///
    /// The same as those of [`block`](Self::block).
    pub fn shadow_block(length_us: u64) -> Result<Self, QuotaError> {
        Self::block_named(SHADOW_LABEL, length_us)
    }

    /// Returns the quota of a block under this label.
    fn block_named(label: &str, length_us: u64) -> Result<Self, QuotaError> {
        Self::new(1, length_us)
            .algorithm(OPENED_BY_A_REFUSAL)
            .label(label)
            .build()
    }

    /// Returns true if it is a [block](Self::block) of either mode, and not one of a limit's own
    /// bands.
    pub fn is_block(&self) -> bool {
        let is_named = |label| {
            let block = Self::block_named(label, self.period_us());
            block.is_ok_and(|block| block.id == self.id)
        };
        self.algorithm == OPENED_BY_A_REFUSAL
            && self.amount == 1
            && (is_named(LABEL) || is_named(SHADOW_LABEL))
    }
}
