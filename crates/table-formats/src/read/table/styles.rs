//! Style of a table's numbers.

use serde_json::Value;

use super::opening::Opening;
use crate::read::{
    doubt::{Doubt, style_options},
    header::Header,
    number::{Decimal, NumberStyle, STYLES},
    survey::ColumnCounts,
};

impl Opening<'_> {
    /// Chooses the style of numbers in which most texts of columns of numbers are numbers.
    pub(super) fn number_style(
        &mut self,
        counts: &[ColumnCounts],
        headers: &[Header],
    ) -> NumberStyle {
        let (decimal, thousands) = (self.given.decimal, self.given.thousands);
        let columns: Vec<&ColumnCounts> = counts
            .iter()
            .filter(|column| column.is_number_like())
            .collect();
        // In the order of `STYLES`: of equally good ones, the simpler one is preferred.
        let mut fitting = self.best_styles(&columns).into_iter();
        let style = fitting.next().unwrap_or(NumberStyle::new(
            decimal.unwrap_or(Decimal::Point),
            thousands.flatten(),
        ));
        let mut alternatives: Vec<NumberStyle> = fitting
            .filter(|other| self.reads_otherwise(style, *other, &columns))
            .collect();
        // Groups that no other number of the column confirms may be decimals.
        let is_doubtful_group = thousands.is_none()
            && matches!(style.thousands, Some('.' | ','))
            && counts
                .iter()
                .any(|column| is_ambiguous(column) && !column.is_decided);
        if is_doubtful_group && alternatives.is_empty() {
            alternatives.push(NumberStyle::new(style.decimal, None));
        }
        if !alternatives.is_empty() {
            let options = std::iter::once(style)
                .chain(alternatives)
                .map(style_options)
                .collect();
            self.doubts.push(style_doubt(counts, headers, options));
        }
        // The numbers of a typed file are not written in any style.
        if self.file.typed.is_none() {
            self.reading.options.decimal = Some(style.decimal);
            self.reading.options.thousands = Some(style.thousands);
        }
        style
    }

    /// The styles that the options allow and in which most texts of these columns are numbers.
    fn best_styles(&self, columns: &[&ColumnCounts]) -> Vec<NumberStyle> {
        let (decimal, thousands) = (self.given.decimal, self.given.thousands);
        let allowed: Vec<(usize, NumberStyle)> = STYLES
            .into_iter()
            .enumerate()
            .filter(|(_, style)| decimal.is_none_or(|given| given == style.decimal))
            .filter(|(_, style)| thousands.is_none_or(|given| given == style.thousands))
            .collect();
        // Cells that the file stores as numbers have no style, so only texts decide.
        let score =
            |index: usize| -> u64 { columns.iter().map(|column| column.evidence_of(index)).sum() };
        let best = allowed.iter().map(|(index, _)| score(*index)).max();
        let best = best.unwrap_or(0);
        allowed
            .into_iter()
            .filter(|(index, _)| score(*index) == best)
            .map(|(_, style)| style)
            .collect()
    }

    /// Returns whether a text of these columns is another number in another style, such as `1.234`.
    fn reads_otherwise(
        &self,
        style: NumberStyle,
        other: NumberStyle,
        columns: &[&ColumnCounts],
    ) -> bool {
        let either = |found: NumberStyle| style == found || other == found;
        // Fields that commas separate have no decimal commas, so a point separates decimals.
        let has_comma_fields = self.reading.options.delimiter == Some(b',');
        let has_points = columns.iter().any(|column| column.ambiguous_points > 0);
        let has_commas = columns.iter().any(|column| column.ambiguous_commas > 0);
        style.decimal != other.decimal
            && (has_points
                && !has_comma_fields
                && either(NumberStyle::new(Decimal::Comma, Some('.')))
                || has_commas && either(NumberStyle::new(Decimal::Point, Some(','))))
    }
}

fn is_ambiguous(column: &ColumnCounts) -> bool {
    column.is_number_like() && column.ambiguous_points + column.ambiguous_commas > 0
}

/// The doubt about numbers that are others in another style.
fn style_doubt(counts: &[ColumnCounts], headers: &[Header], options: Vec<Value>) -> Doubt {
    let affected: Vec<usize> = counts
        .iter()
        .enumerate()
        .filter(|(_, column)| is_ambiguous(column))
        .map(|(index, _)| index)
        .collect();
    let named: Vec<String> = affected
        .iter()
        .filter_map(|index| headers.get(*index))
        .map(|header| format!("\"{}\"", header.text))
        .take(3)
        .collect();
    let has_points = counts
        .iter()
        .any(|column| column.is_number_like() && column.ambiguous_points > 0);
    let sign = if has_points { "1.234" } else { "1,234" };
    let message = format!(
        "numbers of {} written like {sign} may have decimals or groups of three digits",
        named.join(", ")
    );
    Doubt {
        columns: affected,
        ..Doubt::table("decimal", "number_format", message, options)
    }
}
