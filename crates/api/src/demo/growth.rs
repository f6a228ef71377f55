//! What a growth curve says.

use super::gen5::Well;

/// Reads over which a slope is taken: noise of one read then counts little.
const WINDOW: usize = 7;
/// A well whose curve rises less than this does not grow.
const LEAST_RISE: f64 = 0.1;
/// Below this part of the rise, noise of the background makes the logarithm useless.
const LEAST_PART: f64 = 0.05;

/// The figures of one well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Growth {
    /// The first value.
    pub(crate) start: Option<f64>,
    /// The greatest value.
    pub(crate) max: Option<f64>,
    /// The shortest time in which the culture doubles, in hours.
    pub(crate) doubling_hours: Option<f64>,
}

impl Growth {
    /// The figures of a well's values at those hours.
    pub(crate) fn of(well: &Well, hours: &[f64]) -> Self {
        let points: Vec<(f64, f64)> = hours
            .iter()
            .zip(&well.values)
            .filter_map(|(hour, value)| value.map(|value| (*hour, value)))
            .collect();
        let values = || points.iter().map(|(_, value)| *value);
        let (min, max) = (values().reduce(f64::min), values().reduce(f64::max));
        Self {
            start: values().next(),
            max,
            doubling_hours: min.zip(max).and_then(|(min, max)| doubling(&points, min, max - min)),
        }
    }
}

/// The steepest slope of the logarithm above the background.
fn doubling(points: &[(f64, f64)], background: f64, rise: f64) -> Option<f64> {
    if rise < LEAST_RISE {
        return None;
    }
    let above: Vec<(f64, f64)> = points
        .iter()
        .map(|(hour, value)| (*hour, value - background))
        .skip_while(|(_, value)| *value < rise * LEAST_PART)
        .filter(|(_, value)| *value > 0.0)
        .map(|(hour, value)| (hour, value.ln()))
        .collect();
    let steepest = above.windows(WINDOW).map(slope).reduce(f64::max)?;
    (steepest > 0.0).then(|| std::f64::consts::LN_2 / steepest)
}

/// The slope of the least-squares line.
fn slope(points: &[(f64, f64)]) -> f64 {
    let (mut count, mut x_sum, mut y_sum) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        count += 1.0;
        x_sum += x;
        y_sum += y;
    }
    let (x_mean, y_mean) = (x_sum / count, y_sum / count);
    let (mut above, mut below) = (0.0, 0.0);
    for (x, y) in points {
        above += (x - x_mean) * (y - y_mean);
        below += (x - x_mean) * (x - x_mean);
    }
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{SIMULATED, gen5::KineticExport};

    fn growth(values: &[f64]) -> Growth {
        let hours: Vec<f64> = (0..u32::try_from(values.len()).unwrap()).map(f64::from).collect();
        let values = values.iter().copied().map(Some).collect();
        Growth::of(&Well { name: "A1".to_owned(), values }, &hours)
    }

    #[test]
    fn a_curve_that_doubles_every_two_hours_says_so() {
        let values: Vec<f64> =
            (0..20).map(|hour| 0.05 + 0.001 * 2_f64.powf(f64::from(hour) / 2.0)).collect();
        let doubling = growth(&values).doubling_hours.unwrap();
        assert!((doubling - 2.0).abs() < 0.2, "{doubling}");
    }

    #[test]
    fn what_does_not_grow_has_no_doubling_time() {
        assert_eq!(growth(&[0.08, 0.081, 0.079, 0.08, 0.08, 0.081, 0.08]).doubling_hours, None);
        assert_eq!(growth(&[]), Growth { start: None, max: None, doubling_hours: None });
        assert_eq!(growth(&[0.1, 1.0]).doubling_hours, None);
    }

    #[test]
    fn the_shipped_curves_show_the_doubling_times_that_their_header_states() {
        let export = KineticExport::parse(SIMULATED.as_bytes()).unwrap();
        assert_eq!((export.wells.len(), export.hours.len()), (24, 100));
        for well in &export.wells {
            let found = Growth::of(well, &export.hours).doubling_hours;
            if well.name == "D6" {
                assert_eq!(found, None, "a blank does not grow");
                continue;
            }
            let stated = match well.name.as_bytes()[0] {
                b'A' => 0.75,
                b'B' => 1.0,
                b'C' => 1.5,
                _ => 2.25,
            };
            let found = found.unwrap();
            assert!((found / stated - 1.0).abs() < 0.25, "{}: {found} for {stated}", well.name);
        }
    }
}
