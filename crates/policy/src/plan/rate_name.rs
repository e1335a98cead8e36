//! The names of the rates of a plan.

use crate::text::ConfigFault;
use crate::unit::Unit;
use std::fmt;

/// The name of a rate in plans. A limit uses the rate of its [`Unit`], unless it names another one. The default is
/// that of requests, which plans write as `rate`.
///
/// ```
/// use tidegate_policy::plan::RateName;
/// use tidegate_policy::unit::Unit;
///
/// let tokens = Unit::parse("tokens")?;
/// assert_eq!(RateName::parse("tokens")?, RateName::from(tokens));
/// assert_eq!(RateName::parse("requests")?, RateName::default());
/// assert!(RateName::parse("Tokens").is_err());
/// # Ok::<(), tidegate_policy::text::ConfigFault>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateName(Unit);

impl RateName {
    /// Reads the name of a rate.
    ///
    /// # Errors
    ///
    /// If it is not a name in lower case.
    pub fn parse(text: &str) -> Result<Self, ConfigFault> {
        Unit::parse(text).map(Self).map_err(|fault| ConfigFault {
            message: format!("{} cannot be the name of a rate", ConfigFault::quote(text)),
            ..fault
        })
    }

    /// Returns its name.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns true if it is the rate of requests.
    #[inline]
    pub fn is_requests(&self) -> bool {
        self.0.is_requests()
    }
}

impl From<Unit> for RateName {
    fn from(unit: Unit) -> Self {
        Self(unit)
    }
}

impl fmt::Display for RateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
