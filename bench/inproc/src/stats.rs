//! The two numbers that summarize several repetitions.

/// Returns the middle value, or the mean of the two middle ones.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let sorted = sort(values);
    let half = sorted.len() / 2;
    match (sorted.get(half), sorted.len() % 2) {
        (Some(middle), 1) => *middle,
        (Some(upper), _) => f64::midpoint(sorted[half - 1], *upper),
        (None, _) => f64::NAN,
    }
}

/// Returns the distance from the least to the greatest, as a share of the median.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>) -> f64 {
    let sorted = sort(values);
    match (sorted.first(), sorted.last()) {
        (Some(least), Some(greatest)) => (greatest - least) / median(sorted.iter().copied()),
        _ => f64::NAN,
    }
}

fn sort(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_an_outlier_and_the_spread_shows_it() {
        assert!((median([1.0, 100.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median([1.0, 2.0, 3.0, 100.0]) - 2.5).abs() < 1e-9);
        assert!((spread([1.0, 100.0, 2.0]) - 49.5).abs() < 1e-9);
    }
}
