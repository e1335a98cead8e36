//! The used shares of a band that raise an alert (`warn`).

/// The shares of a band, in percent of its capacity, at which an alert is sent: at most four, rising.
///
/// A band reaches a share through the charge that brings its use from below the share to it or beyond. So each
/// share is reached once in a window, without any memory but the bucket itself.
///
/// ```
/// use tidegate_policy::WarnShares;
///
/// let shares = WarnShares::new(&[80, 100])?;
/// assert_eq!(shares.reached((79, 80), 100), Some(80));
/// assert_eq!(shares.reached((80, 99), 100), None);
/// assert_eq!(shares.reached((70, 120), 100), Some(100), "the highest of several");
/// assert!(WarnShares::new(&[100, 80]).is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarnShares {
    /// Rising, then zeros.
    percents: [u8; Self::MAX],
}

impl WarnShares {
    /// The maximum number of shares.
    pub const MAX: usize = 4;

    /// Creates a list of shares, in percent.
    ///
    /// # Errors
    ///
    /// A sentence, if there are more than [`MAX`](Self::MAX), if one is not from 1 to 100, or if they do not
    /// rise.
    pub fn new(percents: &[u8]) -> Result<Self, String> {
        if percents.len() > Self::MAX {
            return Err(format!("there are more than {} shares", Self::MAX));
        }
        if percents.iter().any(|percent| !(1..=100).contains(percent)) {
            return Err("a share is from 1% to 100%".to_owned());
        }
        if !percents.is_sorted_by(|low, high| low < high) {
            return Err("the shares do not rise".to_owned());
        }
        let mut shares = Self::default();
        for (place, percent) in shares.percents.iter_mut().zip(percents) {
            *place = *percent;
        }
        Ok(shares)
    }

    /// Returns true if no share raises an alert.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.percents == [0; Self::MAX]
    }

    /// Returns the shares, in percent, from the lowest.
    pub fn percents(self) -> impl Iterator<Item = u8> {
        self.percents.into_iter().filter(|percent| *percent > 0)
    }

    /// Returns the highest share that a charge reached: use rose from `before` to `used` units of `capacity`.
    pub fn reached(self, (before, used): (u64, u64), capacity: u64) -> Option<u8> {
        let is_within = |units: u64, percent: u8| {
            u128::from(units) * 100 >= u128::from(capacity) * u128::from(percent)
        };
        let highest = self.percents().filter(|it| is_within(used, *it)).last()?;
        (!is_within(before, highest)).then_some(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::WarnShares;

    #[test]
    fn only_rising_shares_within_the_band_are_valid() {
        for invalid in [&[0][..], &[101], &[80, 80], &[100, 80], &[1, 2, 3, 4, 5]] {
            assert!(WarnShares::new(invalid).is_err(), "{invalid:?}");
        }
        assert!(WarnShares::default().is_empty());
        let shares = WarnShares::new(&[1, 50, 99, 100]).unwrap();
        assert!(!shares.is_empty());
        assert!(shares.percents().eq([1, 50, 99, 100]));
    }

    #[test]
    fn each_share_is_reached_once_on_the_way_up() {
        let shares = WarnShares::new(&[80, 100]).unwrap();
        let reached: Vec<u8> = (0..15)
            .filter_map(|used| shares.reached((used, used + 1), 10))
            .collect();
        assert_eq!(reached, [80, 100]);
        // Amounts at which a share lies between two units, or beyond 64 bits in percent.
        assert_eq!(shares.reached((2, 3), 3), Some(100));
        assert_eq!(shares.reached((1, 2), 3), None);
        let most = u64::MAX;
        assert_eq!(shares.reached((most - 1, most), most), Some(100));
    }
}
