//! Curves drawn as one line of text.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws the values in at most `width` characters. Each character shows the mean of its share of
/// the values, from the lowest bar at `low` to the highest at `high`, or a blank without values.
pub(crate) fn sparkline(values: &[Option<f64>], width: usize, low: f64, high: f64) -> String {
    let width = width.min(values.len());
    (0..width)
        .map(|column| {
            let share = column * values.len() / width..(column + 1) * values.len() / width;
            let present = values.get(share).unwrap_or_default().iter().flatten();
            let (mut sum, mut count) = (0.0, 0.0);
            for value in present {
                sum += value;
                count += 1.0;
            }
            if count == 0.0 {
                ' '
            } else {
                bar(sum / count, low, high)
            }
        })
        .collect()
}

fn bar(value: f64, low: f64, high: f64) -> char {
    let part = (value - low) / (high - low);
    // Counting steps avoids a conversion of floats to integers.
    let index = [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875]
        .iter()
        .filter(|step| part >= **step);
    BARS.get(index.count()).copied().unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn rises_from_the_lowest_to_the_highest_bar() {
        let values = some(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(sparkline(&values, 8, 0.0, 7.0), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&values, 4, 0.0, 7.0), "▁▃▆█");
    }

    #[test]
    fn is_blank_where_nothing_was_measured() {
        assert_eq!(sparkline(&[Some(0.0), None, Some(1.0)], 3, 0.0, 1.0), "▁ █");
        assert_eq!(sparkline(&[], 10, 0.0, 1.0), "");
    }

    #[test]
    fn never_has_more_characters_than_values() {
        assert_eq!(sparkline(&some(&[1.0, 2.0]), 40, 1.0, 2.0), "▁█");
    }

    #[test]
    fn flat_curves_and_values_outside_stay_within_the_bars() {
        assert_eq!(sparkline(&some(&[1.0, 1.0]), 2, 1.0, 1.0), "▁▁");
        assert_eq!(sparkline(&some(&[-5.0, 5.0]), 2, 0.0, 1.0), "▁█");
    }
}
