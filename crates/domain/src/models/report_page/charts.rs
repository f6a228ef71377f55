//! Charts of a report, as inline SVG.

use std::fmt::Write;

use super::figures::display;
use crate::{
    html::escaped,
    models::{Class, ConfusionMatrix, Residual},
};

/// Number of classes up to which the cells of a matrix have numbers.
const NUMBERED: usize = 20;

/// Number of characters of a class's label.
const LABEL: usize = 14;

/// Width of the column of labels.
const LABELS: usize = 110;

/// Width of the words over the columns of a matrix.
const CAPTION: usize = 150;

/// Height of the title over a matrix.
const HEAD: usize = 22;

fn label(class: &Class) -> String {
    let text = class.to_string();
    if text.chars().count() <= LABEL {
        return escaped(&text);
    }
    // One fewer, for the ellipsis.
    let stored: String = text.chars().take(LABEL - 1).collect();
    escaped(&stored) + "…"
}

/// Share of a part in thousandths.
fn share(part: u64, whole: u64) -> u128 {
    // 128 bits: counts come from an untrusted report and may be huge.
    (u128::from(part) * 1_000)
        // A class without held-out rows has a sum of 0.
        .checked_div(u128::from(whole))
        .unwrap_or_default()
}

/// Draws a heat map, a row per actual class.
pub(super) fn confusion(matrix: &ConfusionMatrix) -> String {
    let classes = matrix.labels.len();
    let cell = match classes {
        0..=6 => 56,
        7..=NUMBERED => 40,
        _ => 14,
    };
    let is_numbered = classes <= NUMBERED;
    let width = LABELS + (classes * cell).max(CAPTION);
    let height = HEAD + classes * cell + LABELS;
    let mut svg = format!(
        "<div class=\"wide\"><svg viewBox=\"0 0 {width} {height}\" style=\"max-width:{width}px\" \
         role=\"img\" aria-label=\"Confusion matrix\">\n\
         <text class=\"soft\" x=\"{}\" y=\"14\" text-anchor=\"end\">actual</text>\n\
         <text class=\"soft\" x=\"{LABELS}\" y=\"14\">predicted, named below</text>\n",
        LABELS - 8
    );
    // Writing to a String cannot fail.
    for (row, (actual, counts)) in matrix.labels.iter().zip(&matrix.counts).enumerate() {
        let y = HEAD + row * cell;
        let whole = counts
            .iter()
            .fold(0_u64, |sum, count| sum.saturating_add(*count));
        // Labels of small cells would overlap.
        if is_numbered || row % 4 == 0 {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                LABELS - 8,
                y + cell / 2 + 4,
                label(actual)
            );
        }
        for (column, (predicted, count)) in matrix.labels.iter().zip(counts).enumerate() {
            let x = LABELS + column * cell;
            let (at, inner) = (share(*count, whole), cell - 2);
            let title = escaped(&format!("actual {actual}, predicted {predicted}: {count}"));
            // At least 12 %, so that one row among thousands is visible.
            let opacity = at * 88 / 1_000 + 12;
            let paint = if *count == 0 {
                "class=\"empty\"".to_owned()
            } else {
                format!(
                    "class=\"cell\" fill-opacity=\"{}.{:02}\"",
                    opacity / 100,
                    opacity % 100
                )
            };
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{inner}\" height=\"{inner}\" rx=\"3\" {paint}>\
                 <title>{title}</title></rect>"
            );
            if is_numbered {
                // Dark cells need light digits.
                let class = if at > 700 { " class=\"on\"" } else { "" };
                let _ = write!(
                    svg,
                    "<text{class} x=\"{}\" y=\"{}\" text-anchor=\"middle\">{count}</text>",
                    x + inner / 2,
                    y + inner / 2 + 4
                );
            }
            svg.push('\n');
        }
    }
    let below = HEAD + classes * cell + 10;
    for (column, predicted) in matrix.labels.iter().enumerate() {
        if is_numbered || column % 4 == 0 {
            let x = LABELS + column * cell + cell / 2 + 4;
            let _ = writeln!(
                svg,
                "<text transform=\"translate({x} {below}) rotate(-55)\" text-anchor=\"end\">{}</text>",
                label(predicted)
            );
        }
    }
    svg.push_str("</svg></div>\n");
    svg
}

/// Side of the plot of a scatter, and its margins.
const SIDE: f64 = 320.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 46.0;

/// Range of an axis with its ticks.
struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Axis {
    /// An axis that has all values; `None` if they are too far apart to be drawn.
    fn of(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        let range = high - low;
        // There are no values, or their range exceeds the largest float.
        if !range.is_finite() {
            return None;
        }
        let range = if range > 0.0 {
            range
        } else {
            // Equal values need a range as well: scaling divides by it.
            low.abs().max(1.0)
        };
        let (low, high) = (low - range * 0.04, high + range * 0.04);
        let power = 10_f64.powf((range / 4.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|factor| factor * power)
            .into_iter()
            .find(|step| range / step <= 5.0)?;
        let first = (low / step).ceil() * step;
        let ticks = std::iter::successors(Some(first), |tick| Some(tick + step));
        // Where the step is below the precision of the values, adding it never reaches the end.
        let ticks = ticks.take_while(|tick| *tick <= high).take(12).collect();
        Some(Self { low, high, ticks })
    }

    /// Place of a value on the axis, from 0 to [`SIDE`].
    fn place(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low) * SIDE
    }
}

/// Draws predicted over actual values.
pub(super) fn residuals(pairs: &[Residual]) -> String {
    let values = pairs.iter().flat_map(|pair| [pair.actual, pair.predicted]);
    let Some(axis) = Axis::of(values) else {
        return "<p>There is nothing to draw.</p>\n".to_owned();
    };
    let (right, bottom) = (LEFT + SIDE, TOP + SIDE);
    let (width, height) = (right + 12.0, bottom + BOTTOM);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" style=\"max-width:{width}px\" role=\"img\" \
         aria-label=\"Predicted over actual values\">\n"
    );
    // Writing to a String cannot fail.
    for tick in &axis.ticks {
        let (x, y) = (LEFT + axis.place(*tick), bottom - axis.place(*tick));
        let text = display(*tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
             <line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
             <text class=\"soft\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>\
             <text class=\"soft\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            bottom + 18.0,
            LEFT - 8.0,
            y + 4.0
        );
    }
    let _ = writeln!(
        svg,
        "<line class=\"ideal\" x1=\"{LEFT}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{TOP}\"/>"
    );
    for pair in pairs {
        let _ = writeln!(
            svg,
            "<circle class=\"point\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>",
            LEFT + axis.place(pair.actual),
            bottom - axis.place(pair.predicted)
        );
    }
    let middle = TOP + SIDE / 2.0;
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">actual</text>\
         <text transform=\"translate(14 {middle}) rotate(-90)\" text-anchor=\"middle\">predicted</text>\
         </svg>",
        LEFT + SIDE / 2.0,
        height - 8.0
    );
    svg
}
