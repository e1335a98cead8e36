//! The permits of a request in flight, for its application.

use http::Extensions;
use tidegate::Decision;

/// Lets the application keep the permits of its request for longer than its response lasts.
#[inline]
pub(crate) fn offer_permit(extensions: &mut Extensions, decision: &Decision) {
    if let Some(permit) = decision.permit() {
        extensions.insert(permit);
    }
}
