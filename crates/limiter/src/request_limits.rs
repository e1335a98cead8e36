//! Limits that a request carries itself, in place of configured ones.

use crate::error::CheckError;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_policy::respond::HeaderNames;
use tidegate_policy::{Band, Descriptor, Policy};

/// The limits that the descriptors of one request carry: their bands, and the header names of these. They
/// live as long as the decision based on them.
#[derive(Debug)]
pub(crate) struct RequestLimits(SmallVec<[(u16, Band, HeaderNames); 1]>);

impl RequestLimits {
    /// Returns the limits that `descriptors` carry; `None` if there are none, as in nearly all requests.
    pub(crate) fn of(
        policy: &Policy,
        descriptors: &[Descriptor<'_>],
    ) -> Result<Option<Arc<Self>>, CheckError> {
        let mut brought = SmallVec::new();
        for (nth, descriptor) in (0..).zip(descriptors) {
            if let Some(told) = descriptor.limit {
                let band = policy.override_band(told);
                let band = band.map_err(|reason| CheckError::BadLimit { reason })?;
                let spoken = policy.override_header_names(&band);
                brought.push((nth, band, spoken));
            }
        }
        Ok((!brought.is_empty()).then(|| Arc::new(Self(brought))))
    }

    /// Returns the limit that the descriptor of this index carries.
    pub(crate) fn get(&self, descriptor: u16) -> Option<(&Band, &HeaderNames)> {
        let mut all = self.0.iter();
        let (_, band, spoken) = all.find(|(nth, ..)| *nth == descriptor)?;
        Some((band, spoken))
    }
}
