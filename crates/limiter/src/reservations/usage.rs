//! The usage that settles a reservation, by unit.

use super::payload::SealedUnit;
use super::settled::{SettleError, SettledUnit};
use tidegate_policy::Cost;
use tidegate_policy::unit::{CostFault, REQUESTS, Unit};

/// Returns the amount used of each of `units`; `None` for a unit that `actual` does not name.
///
/// A number is of the only unit other than requests that was reserved, or of requests if there is none.
pub(super) fn used_units(
    units: &[SealedUnit],
    actual: Cost<'_>,
) -> Result<Vec<Option<u64>>, SettleError> {
    let mut used = vec![None; units.len()];
    if let Some(number) = actual.number() {
        let unit = settled_by_number(units)?;
        if let Some(used) = used.get_mut(unit) {
            *used = Some(number);
        }
        return Ok(used);
    }
    let known: Vec<Unit> = units
        .iter()
        .filter_map(|unit| Unit::parse(&unit.name).ok())
        .collect();
    actual.check(&known).map_err(SettleError::BadCost)?;
    for (unit, used) in units.iter().zip(&mut used) {
        let mut named = actual.units().filter(|(name, _)| *name == &*unit.name);
        *used = named.next().map(|(_, amount)| amount);
    }
    Ok(used)
}

/// Returns the index of the unit that a number settles.
fn settled_by_number(units: &[SealedUnit]) -> Result<usize, SettleError> {
    let position = |is_it: &dyn Fn(&SealedUnit) -> bool| units.iter().position(is_it);
    let is_reserved = |unit: &&SealedUnit| &*unit.name != REQUESTS && unit.estimate > 0;
    let mut reserved = units.iter().filter(is_reserved);
    let candidates: Vec<&SealedUnit> = match (reserved.next(), reserved.next()) {
        (Some(only), None) => return Ok(position(&|unit| unit == only).unwrap_or(0)),
        (None, _) => match position(&|unit| &*unit.name == REQUESTS) {
            Some(requests) => return Ok(requests),
            None if units.len() <= 1 => return Ok(0),
            None => units.iter().collect(),
        },
        (Some(_), Some(_)) => units.iter().filter(is_reserved).collect(),
    };
    let names = candidates.iter().map(|unit| format!("`{}`", unit.name));
    let names: Vec<String> = names.collect();
    let fault = CostFault::Ambiguous(names.join(", "));
    Err(SettleError::BadCost(fault))
}

/// Returns the estimate and the usage of each unit.
pub(super) fn settled_units(units: Vec<SealedUnit>, actual: &[Option<u64>]) -> Vec<SettledUnit> {
    let units = units.into_iter().zip(actual);
    let settled = units.map(|(SealedUnit { name, estimate }, actual)| SettledUnit {
        name,
        estimate,
        actual: actual.unwrap_or(estimate),
    });
    settled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(reserved: &[(&str, u64)], actual: Cost<'_>) -> Result<Vec<Option<u64>>, String> {
        let units: Vec<SealedUnit> = reserved
            .iter()
            .map(|(name, estimate)| SealedUnit {
                name: (*name).into(),
                estimate: *estimate,
            })
            .collect();
        used_units(&units, actual).map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_settles_the_only_unit_other_than_requests() {
        let of = |reserved: &[(&str, u64)]| used(reserved, Cost::from(9));
        assert_eq!(of(&[("requests", 1)]), Ok(vec![Some(9)]));
        assert_eq!(of(&[("tokens", 0)]), Ok(vec![Some(9)]));
        assert_eq!(
            of(&[("requests", 1), ("tokens", 8)]),
            Ok(vec![None, Some(9)])
        );
        let with_unused = [("requests", 1), ("bytes", 0), ("tokens", 8)];
        assert_eq!(of(&with_unused), Ok(vec![None, None, Some(9)]));
        assert_eq!(
            of(&[("requests", 800), ("tokens", 0)]),
            Ok(vec![Some(9), None])
        );
        let expected = "a number can mean several units; name one of `tokens`, `microusd`";
        let several = [("requests", 1), ("tokens", 8), ("microusd", 3)];
        assert_eq!(of(&several), Err(expected.to_owned()));
        assert!(of(&[("tokens", 0), ("microusd", 0)]).is_err());
    }

    #[test]
    fn units_that_a_commit_does_not_name_keep_their_estimate() {
        let reserved = [("requests", 1), ("tokens", 800), ("bytes", 0)];
        let of = |actual: &[(&str, u64)]| used(&reserved, actual.into());
        assert_eq!(of(&[]), Ok(vec![None, None, None]));
        assert_eq!(
            of(&[("bytes", 5), ("tokens", 0)]),
            Ok(vec![None, Some(0), Some(5)])
        );
        let expected = "unknown unit `tokenz`; expected `requests`, `tokens`, `bytes`";
        assert_eq!(of(&[("tokenz", 5)]), Err(expected.to_owned()));
    }
}
