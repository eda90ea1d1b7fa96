//! The median of measured values.

/// Returns the median; `None` without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_even_number_is_between_the_two_in_the_middle() {
        for (values, expected) in [
            (&[][..], None),
            (&[3.0], Some(3.0)),
            (&[9.0, 1.0, 4.0], Some(4.0)),
            (&[8.0, 1.0, 2.0, 3.0], Some(2.5)),
        ] {
            assert_eq!(median(values.iter().copied()), expected);
        }
    }
}
