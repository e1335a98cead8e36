//! Units: what limits count, and how much of each a request consumes.

#[cfg(test)]
mod tests;

use crate::text::{ConfigFault, scalar};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The name of the unit that limits count by default.
pub const REQUESTS: &str = "requests";

/// The maximum number of units in one cost, and of units that the limits of a policy count.
pub const UNITS_MAX: usize = 16;

/// The longest name of a unit, in bytes: it appears in headers and in the ids of reservations.
const NAME_MAX: usize = 32;

/// The unit that a limit counts. Default: [`REQUESTS`].
///
/// ```
/// use tidegate_policy::unit::Unit;
///
/// assert_eq!(Unit::parse("tokens")?.as_str(), "tokens");
/// assert!(Unit::parse("requests")?.is_requests() && Unit::default().is_requests());
/// assert!(Unit::parse("Tokens").is_err());
/// # Ok::<(), tidegate_policy::text::ConfigFault>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit(Option<Arc<str>>);

impl Unit {
    /// Reads the name of a unit.
    ///
    /// # Errors
    ///
    /// If it is not a name in lower case.
    pub fn parse(text: &str) -> Result<Self, ConfigFault> {
        let belongs = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        let starts_well = text.starts_with(|first: char| first.is_ascii_lowercase());
        if starts_well && text.len() <= NAME_MAX && text.chars().all(belongs) {
            return Ok(Self((text != REQUESTS).then(|| text.into())));
        }
        let message = format!("{} cannot be a unit", ConfigFault::quote(text));
        let help = "use up to 32 lower-case letters, digits, `-` and `_`, beginning with a letter, \
                    for example `tokens`";
        Err(ConfigFault::new(message).help(help))
    }

    /// Returns its name.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or(REQUESTS)
    }

    /// Returns true if it is [`REQUESTS`].
    #[inline]
    pub fn is_requests(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the name that responses contain; `None` for [`REQUESTS`], which they leave out.
    pub fn reported(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// The cost of a request: a number, or an amount of each unit. Borrowed, cheap to copy.
///
/// - The default is one request. So is an empty map.
/// - A map of units: `requests` is 1 if it is left out, any other unit 0. An amount of 0 reads a limit
///   without charging it, and is never refused.
/// - A number is of the only unit that the limits of the policy count, or of `requests` if they count
///   several.
///
/// ```
/// use tidegate_policy::unit::Cost;
/// use tidegate_policy::Request;
///
/// assert_eq!(Request::new().cost(800).cost, 800);
/// let costs = [("tokens", 800), ("microusd", 120)];
/// let request = Request::new().cost(&costs);
/// assert_eq!(request.cost.units().collect::<Vec<_>>(), costs);
/// assert!(Cost::default().units().next().is_none());
/// ```
#[derive(Clone, Copy)]
pub struct Cost<'a> {
    form: CostForm<'a>,
    /// True if it comes from rules of the configuration, which are the same for all policies: units that a
    /// policy does not count are then no mistake.
    is_found: bool,
}

#[derive(Clone, Copy)]
enum CostForm<'a> {
    Number(u64),
    Pairs(&'a [(&'a str, u64)]),
    Map(&'a [(Cow<'a, str>, u64)]),
}

/// A [`Cost`] with its own map, which needs no allocation for up to four units. Default: one request.
///
/// ```
/// use tidegate_policy::unit::{Cost, CostMap};
///
/// let cost = CostMap::from_iter([("tokens", 800)]);
/// assert_eq!(Cost::from(&cost).units().next(), Some(("tokens", 800)));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum CostMap<'a> {
    /// A number.
    Number(u64),
    /// Amounts by unit.
    Units(SmallVec<[(Cow<'a, str>, u64); 4]>),
}

/// A copy of a [`Cost`] for later.
#[derive(Clone, Debug)]
pub struct KeptCost {
    form: KeptForm,
    is_found: bool,
}

#[derive(Clone, Debug)]
enum KeptForm {
    OneRequest,
    Number(u64),
    /// Boxed, because it is large, and most requests have none.
    Units(Box<CostMap<'static>>),
}

// === impl Cost ===

impl<'a> Cost<'a> {
    /// One request: the cost of a request that states none.
    pub const ONE_REQUEST: Self = Self {
        form: CostForm::Pairs(&[]),
        is_found: false,
    };

    /// Returns the same cost as one that the configuration found in a request. Units that the policy does not
    /// count are ignored.
    #[must_use]
    pub const fn found(self) -> Self {
        Self {
            is_found: true,
            ..self
        }
    }

    /// Returns true if it names no unit: it is a number, or one request.
    #[inline]
    pub fn is_plain(self) -> bool {
        matches!(self.form, CostForm::Number(_) | CostForm::Pairs([]))
    }

    /// Returns true if the request states more than that it is one request, so that the cost may have been
    /// spent before.
    #[inline]
    pub fn is_stated(self) -> bool {
        match self.form {
            CostForm::Number(number) => number > 1,
            _ => self
                .units()
                .any(|(unit, amount)| amount > u64::from(unit == REQUESTS)),
        }
    }

    /// Returns the amount of `unit`; `None` if the request asks for none of it. `takes_numbers` is true if a
    /// number is of this unit. A number may be 0, an amount in a map is not: that one asks for nothing.
    #[inline]
    pub(crate) fn of(self, unit: &Unit, takes_numbers: bool) -> Option<u64> {
        match self.form {
            CostForm::Number(number) => takes_numbers.then_some(number),
            CostForm::Pairs([]) => unit.is_requests().then_some(1),
            _ => self.named(unit).filter(|amount| *amount > 0),
        }
    }

    /// Returns the amount of `unit` in a map.
    #[inline(never)]
    fn named(self, unit: &Unit) -> Option<u64> {
        let found = self.units().find(|(name, _)| *name == unit.as_str());
        let default = unit.is_requests().then_some(1);
        found.map(|(_, amount)| amount).or(default)
    }

    /// Returns the number, unless it is a map.
    pub fn number(self) -> Option<u64> {
        match self.form {
            CostForm::Number(number) => Some(number),
            CostForm::Pairs(_) | CostForm::Map(_) => None,
        }
    }

    /// Returns the units that it names, with their amounts. A number names none.
    pub fn units(self) -> impl Iterator<Item = (&'a str, u64)> {
        let (pairs, map) = match self.form {
            CostForm::Number(_) => (&[][..], &[][..]),
            CostForm::Pairs(pairs) => (pairs, &[][..]),
            CostForm::Map(map) => (&[][..], map),
        };
        let map = map.iter().map(|(unit, amount)| (&**unit, *amount));
        pairs.iter().copied().chain(map)
    }

    /// Checks the units that it names.
    ///
    /// # Errors
    ///
    /// If there are too many, or one is named twice, or is not in `known`.
    pub fn check(self, known: &[Unit]) -> Result<(), CostFault> {
        if self.units().nth(UNITS_MAX).is_some() {
            return Err(CostFault::TooMany);
        }
        for (nth, (unit, _)) in self.units().enumerate() {
            if self.units().take(nth).any(|(earlier, _)| earlier == unit) {
                return Err(CostFault::Twice(unit.to_owned()));
            }
            let is_known = || known.iter().any(|known| known.as_str() == unit);
            if !self.is_found && !is_known() {
                return Err(CostFault::Unknown {
                    unit: ConfigFault::quote(unit),
                    known: listed(known),
                });
            }
        }
        Ok(())
    }

    /// Returns a copy that owns its names.
    pub fn to_map(self) -> CostMap<'static> {
        match self.form {
            CostForm::Number(number) => CostMap::Number(number),
            CostForm::Pairs([]) => CostMap::default(),
            _ => self
                .units()
                .map(|(unit, amount)| (unit.to_owned(), amount))
                .collect(),
        }
    }
}

/// Returns "`requests`, `tokens`".
fn listed(units: &[Unit]) -> String {
    let units: Vec<String> = units
        .iter()
        .map(|unit| format!("`{}`", unit.as_str()))
        .collect();
    units.join(", ")
}

impl Default for Cost<'_> {
    fn default() -> Self {
        Self::ONE_REQUEST
    }
}

impl From<u64> for Cost<'_> {
    fn from(number: u64) -> Self {
        Self {
            form: CostForm::Number(number),
            is_found: false,
        }
    }
}

impl<'a> From<&'a [(&'a str, u64)]> for Cost<'a> {
    fn from(units: &'a [(&'a str, u64)]) -> Self {
        Self {
            form: CostForm::Pairs(units),
            is_found: false,
        }
    }
}

impl<'a, const N: usize> From<&'a [(&'a str, u64); N]> for Cost<'a> {
    fn from(units: &'a [(&'a str, u64); N]) -> Self {
        Self::from(&units[..])
    }
}

impl<'a> From<&'a CostMap<'_>> for Cost<'a> {
    fn from(cost: &'a CostMap<'_>) -> Self {
        let form = match cost {
            CostMap::Number(number) => CostForm::Number(*number),
            CostMap::Units(units) if units.is_empty() => CostForm::Pairs(&[]),
            CostMap::Units(units) => CostForm::Map(units),
        };
        Self {
            form,
            is_found: false,
        }
    }
}

impl PartialEq for Cost<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number() && self.units().eq(other.units())
    }
}

impl Eq for Cost<'_> {}

impl PartialEq<u64> for Cost<'_> {
    fn eq(&self, other: &u64) -> bool {
        self.number() == Some(*other)
    }
}

impl fmt::Debug for Cost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            Some(number) => number.fmt(f),
            None => f.debug_map().entries(self.units()).finish(),
        }
    }
}

// === impl KeptCost ===

impl From<Cost<'_>> for KeptCost {
    fn from(cost: Cost<'_>) -> Self {
        Self {
            form: match cost.form {
                CostForm::Number(number) => KeptForm::Number(number),
                CostForm::Pairs([]) => KeptForm::OneRequest,
                _ => KeptForm::Units(Box::new(cost.to_map())),
            },
            is_found: cost.is_found,
        }
    }
}

impl KeptCost {
    /// Returns the cost.
    pub fn cost(&self) -> Cost<'_> {
        let cost = match &self.form {
            KeptForm::OneRequest => Cost::ONE_REQUEST,
            KeptForm::Number(number) => Cost::from(*number),
            KeptForm::Units(units) => Cost::from(&**units),
        };
        Cost {
            is_found: self.is_found,
            ..cost
        }
    }
}

// === impl CostMap ===

impl Default for CostMap<'_> {
    fn default() -> Self {
        Self::Units(SmallVec::new())
    }
}

impl From<u64> for CostMap<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl<'a, N: Into<Cow<'a, str>>> FromIterator<(N, u64)> for CostMap<'a> {
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(units: I) -> Self {
        let units = units.into_iter();
        Self::Units(units.map(|(unit, amount)| (unit.into(), amount)).collect())
    }
}

impl fmt::Debug for CostMap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Cost::from(self).fmt(f)
    }
}

impl<'a> CostMap<'a> {
    /// Parses the text form: a whole number, or units such as `tokens=800,microusd=120`.
    ///
    /// ```
    /// use tidegate_policy::unit::CostMap;
    ///
    /// assert_eq!(CostMap::parse("3")?, CostMap::Number(3));
    /// let cost = CostMap::from_iter([("tokens", 800), ("bytes", 9)]);
    /// assert_eq!(CostMap::parse("tokens=800,bytes=9")?, cost);
    /// assert!(CostMap::parse("tokens=-1").is_err());
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the mistake and the correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let amount = |text: &str| {
            let amount = scalar::whole(text, &(0..=u64::MAX));
            amount.map_err(ConfigFault::into_sentence)
        };
        if !text.contains('=') {
            let number = amount(text).map(Self::Number);
            return number.map_err(|fault| {
                format!("{fault}; write a number, or units such as `tokens=800,bytes=9`")
            });
        }
        let mut units = SmallVec::<[(Cow<'a, str>, u64); 4]>::new();
        for pair in text.split(',') {
            let (unit, number) = pair.trim().split_once('=').ok_or_else(|| {
                let pair = ConfigFault::quote(pair.trim());
                format!("{pair} is not a unit with its amount, such as `tokens=800`")
            })?;
            let unit = Unit::parse(unit.trim()).map_err(ConfigFault::into_sentence)?;
            if units.len() == UNITS_MAX {
                return Err(CostFault::TooMany.to_string());
            }
            if units.iter().any(|(known, _)| known == unit.as_str()) {
                return Err(CostFault::Twice(unit.as_str().to_owned()).to_string());
            }
            units.push((unit.as_str().to_owned().into(), amount(number.trim())?));
        }
        Ok(Self::Units(units))
    }
}

/// The mistake in a [`Cost`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostFault {
    /// It names more than [`UNITS_MAX`] units.
    TooMany,
    /// It names this unit more than once.
    Twice(String),
    /// A number could be of any of these units.
    Ambiguous(String),
    /// No limit of the policy counts the unit.
    Unknown {
        /// The unit, quoted.
        unit: String,
        /// The units that are counted.
        known: String,
    },
}

impl fmt::Display for CostFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "a cost has at most {UNITS_MAX} units"),
            Self::Twice(unit) => write!(f, "a cost names the unit `{unit}` twice"),
            Self::Ambiguous(units) => {
                write!(f, "a number can mean several units; name one of {units}")
            }
            Self::Unknown { unit, known } => write!(f, "unknown unit {unit}; expected {known}"),
        }
    }
}

impl std::error::Error for CostFault {}
