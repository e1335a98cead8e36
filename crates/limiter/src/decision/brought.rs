//! Limits that a request brings itself, instead of any that is configured.

use crate::error::CheckError;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_policy::respond::HeaderNames;
use tidegate_policy::{Band, Descriptor, Policy};

/// The limits that the descriptors of one request bring: what they allow, and how that is spelt. They
/// live as long as the decision by them.
#[derive(Debug)]
pub(crate) struct RequestLimits(SmallVec<[(u16, Band, HeaderNames); 1]>);

impl RequestLimits {
    /// What `descriptors` bring; `None` where they bring nothing, as nearly all.
    pub(crate) fn of(
        policy: &Policy,
        descriptors: &[Descriptor<'_>],
    ) -> Result<Option<Arc<Self>>, CheckError> {
        let mut brought = SmallVec::new();
        for (nth, descriptor) in (0..).zip(descriptors) {
            if let Some(told) = descriptor.limit {
                let band = policy.told_band(told);
                let band = band.map_err(|reason| CheckError::BadLimit { reason })?;
                let spoken = policy.told_spoken(&band);
                brought.push((nth, band, spoken));
            }
        }
        Ok((!brought.is_empty()).then(|| Arc::new(Self(brought))))
    }

    /// What the descriptor of this number brings.
    pub(crate) fn get(&self, descriptor: u16) -> Option<(&Band, &HeaderNames)> {
        let mut all = self.0.iter();
        let (_, band, spoken) = all.find(|(nth, ..)| *nth == descriptor)?;
        Some((band, spoken))
    }
}
