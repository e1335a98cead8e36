//! The shares of subjects in several rates.
//!
//! Most sources set the rate of requests alone, and a subject then has its share as one number. With more rates a
//! subject has the number of a row, which has its share of each rate: many subjects have the same row.

use super::subject_share::PackedShare;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// The shares of one subject or group, in the order of the rates.
pub(super) type ShareRow = SmallVec<[PackedShare; 4]>;

/// Rows of shares.
#[derive(Debug, Default)]
pub(super) struct ShareRows {
    /// The number of rates besides that of requests.
    named: usize,
    /// The rows, one behind the other. Empty if there is one rate.
    shares: Vec<PackedShare>,
}

/// Rows under construction, each once.
pub(super) struct ShareRowsBuilder {
    rows: ShareRows,
    numbers: HashMap<ShareRow, u32, RandomState>,
}

impl ShareRows {
    /// Returns the shares of the row with this number, of each rate.
    #[inline]
    fn row(&self, number: u32) -> Option<&[PackedShare]> {
        let width = self.named.saturating_add(1);
        let start = usize::try_from(number).ok()?.checked_mul(width)?;
        self.shares.get(start..start.checked_add(width)?)
    }

    /// Returns the share of a rate, by the number of the subject.
    #[inline]
    pub(super) fn share(&self, number: u32, column: usize) -> Option<PackedShare> {
        if self.named == 0 {
            return Some(PackedShare(number));
        }
        self.row(number)?.get(column).copied()
    }

    /// Returns its size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.shares
            .capacity()
            .saturating_mul(size_of::<PackedShare>())
    }
}

impl ShareRowsBuilder {
    /// Starts rows of so many rates besides that of requests.
    pub(super) fn new(named: usize) -> Self {
        Self {
            rows: ShareRows {
                named,
                shares: Vec::new(),
            },
            numbers: HashMap::default(),
        }
    }

    /// Returns the number of a subject with these shares. `None` if there are more rows than numbers.
    pub(super) fn number(&mut self, row: ShareRow) -> Option<u32> {
        if self.rows.named == 0 {
            return row.first().map(|share| share.0);
        }
        if let Some(known) = self.numbers.get(&row) {
            return Some(*known);
        }
        let number = u32::try_from(self.numbers.len()).ok()?;
        self.rows.shares.extend_from_slice(&row);
        self.numbers.insert(row, number);
        Some(number)
    }

    /// Returns the rows.
    pub(super) fn finish(self) -> ShareRows {
        self.rows
    }
}
