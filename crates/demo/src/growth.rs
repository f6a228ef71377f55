//! Figures of a growth curve.

use crate::gen5::Well;

/// Number of reads per slope, enough to average out the noise of one read.
const WINDOW: usize = 7;

/// Figures of one well. None depends on the background, which an export does not contain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Growth {
    /// The first value.
    pub(crate) start: Option<f64>,
    /// The greatest value.
    pub(crate) max: Option<f64>,
    /// The steepest rise, per hour.
    pub(crate) max_rate: Option<f64>,
}

impl Growth {
    /// Computes the figures of a well whose values were read at `hours`.
    pub(crate) fn of(well: &Well, hours: &[f64]) -> Self {
        let points: Vec<(f64, f64)> = hours
            .iter()
            .zip(&well.values)
            .filter_map(|(hour, value)| value.map(|value| (*hour, value)))
            .collect();
        Self {
            start: points.first().map(|(_, value)| *value),
            max: points.iter().map(|(_, value)| *value).reduce(f64::max),
            max_rate: points.windows(WINDOW).map(slope).reduce(f64::max),
        }
    }
}

/// Computes the slope of the least-squares line.
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
    use crate::{SIMULATED, gen5::KineticExport};

    fn growth(values: &[f64]) -> Growth {
        let hours: Vec<f64> = (0..u32::try_from(values.len()).unwrap())
            .map(f64::from)
            .collect();
        let values = values.iter().copied().map(Some).collect();
        Growth::of(
            &Well {
                name: "A1".to_owned(),
                values,
            },
            &hours,
        )
    }

    #[test]
    fn the_steepest_part_of_a_curve_counts() {
        let rising = [1.0, 1.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 4.5, 4.5];
        let growth = growth(&rising);
        assert_eq!((growth.start, growth.max), (Some(1.0), Some(4.5)));
        assert!((growth.max_rate.unwrap() - 0.5).abs() < 1e-9, "{growth:?}");
    }

    #[test]
    fn too_few_values_have_no_rate() {
        assert_eq!(
            growth(&[]),
            Growth {
                start: None,
                max: None,
                max_rate: None
            }
        );
        assert_eq!(growth(&[0.1, 1.0]).max_rate, None);
    }

    #[test]
    fn the_shipped_curves_rise_as_the_formula_in_their_header_does() {
        let export = KineticExport::parse(SIMULATED.as_bytes()).unwrap();
        assert_eq!((export.wells.len(), export.hours.len()), (24, 100));
        // A logistic curve rises most steeply at half its height: K ln 2 / (4 T).
        for (name, height, doubling) in [
            ("A1", 1.5, 0.75),
            ("A6", 1.5, 0.75),
            ("B3", 1.35, 1.0),
            ("C2", 1.1, 1.5),
            ("D1", 0.9, 2.25),
        ] {
            let well = export.wells.iter().find(|well| well.name == name).unwrap();
            let found = Growth::of(well, &export.hours).max_rate.unwrap();
            let stated = height * std::f64::consts::LN_2 / (4.0 * doubling);
            assert!(
                (found / stated - 1.0).abs() < 0.1,
                "{name}: {found} for {stated}"
            );
        }
        let blank = export.wells.last().unwrap();
        assert!(Growth::of(blank, &export.hours).max_rate.unwrap() < 0.01);
    }
}
