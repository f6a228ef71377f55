//! The table at the end of the story: one line per well.

use crate::{
    gen5::{KineticExport, Well},
    growth::Growth,
    sparkline::sparkline,
};

/// Width of a curve, in characters.
const CURVE_WIDTH: usize = 40;

/// Renders the table of all wells. All curves have the same scale.
pub(crate) fn table(export: &KineticExport) -> String {
    let values = || {
        export
            .wells
            .iter()
            .flat_map(|well| well.values.iter().flatten().copied())
    };
    let low = values().reduce(f64::min).unwrap_or(0.0);
    let high = values().reduce(f64::max).unwrap_or(1.0);
    let mut lines = vec![format!(
        "  well  points  start OD  max OD  max OD/h  curve (all wells from {low:.3} to {high:.3})"
    )];
    lines.extend(
        export
            .wells
            .iter()
            .map(|well| line(well, &export.hours, low, high)),
    );
    lines.join("\n")
}

fn line(well: &Well, hours: &[f64], low: f64, high: f64) -> String {
    let growth = Growth::of(well, hours);
    let number =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
    let line = format!(
        "  {:<4}  {:>6}  {:>8}  {:>6}  {:>8}  {}",
        well.name,
        well.values.iter().flatten().count(),
        number(growth.start),
        number(growth.max),
        number(growth.max_rate),
        sparkline(&well.values, CURVE_WIDTH, low, high),
    );
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_each_well_with_its_curve() {
        let well = |name: &str, values: &[Option<f64>]| Well {
            name: name.to_owned(),
            values: values.to_vec(),
        };
        let export = KineticExport {
            header: Vec::new(),
            wells: vec![
                well("A1", &[Some(0.1), None, Some(0.8)]),
                well("D12", &[None, None, None]),
            ],
            hours: vec![0.0, 1.0, 2.0],
        };
        let table = table(&export);
        let lines: Vec<&str> = table.lines().skip(1).collect();
        assert_eq!(lines[0], "  A1         2     0.100   0.800         -  ▁ █");
        assert_eq!(lines[1], "  D12        0         -       -         -");
    }
}
