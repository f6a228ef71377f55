//! Detection of the delimiter.
//!
//! Published sniffers return a best guess. This one also returns the delimiters that fit as well,
//! because then a person has to choose.

use std::collections::BTreeMap;

use super::sample::{SampleRow, sep_line, split, without_endings};
use crate::read::{number::NumberForm, options::ReadOptions, target::ImportTarget};

/// Delimiters that are tried, in order of preference.
pub(in crate::read) const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// Difference of scores below which two delimiters fit equally well.
const TIE: f64 = 0.05;

/// Delimiter of a text, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::read) struct DelimiterChoice {
    pub(in crate::read) delimiter: u8,
    /// True if the first line names the delimiter (`sep=;`).
    pub(in crate::read) has_sep_line: bool,
    /// Delimiters that fit as well.
    pub(in crate::read) alternatives: Vec<u8>,
    /// True if the file may also be one column of numbers with decimal commas.
    pub(in crate::read) may_be_decimals: bool,
}

/// Finds the delimiter of a text from its beginning.
pub(super) fn find_delimiter(
    sample: &str,
    options: &ReadOptions,
    target: Option<&ImportTarget>,
) -> DelimiterChoice {
    let named = sep_line(sample);
    let mut choice = DelimiterChoice {
        delimiter: options.delimiter.or(named).unwrap_or(b','),
        has_sep_line: named.is_some(),
        alternatives: Vec::new(),
        may_be_decimals: false,
    };
    if options.delimiter.or(named).is_some() {
        return choice;
    }
    let quote = options.quote.unwrap_or(Some(b'"'));
    if let Some(delimiter) = target.and_then(|target| delimiter_of_header(sample, quote, target)) {
        choice.delimiter = delimiter;
        return choice;
    }
    let fits = fits_of(sample, quote);
    let Some((best, division)) = fits.first() else {
        let is_blank = |byte: u8| byte.is_ascii_whitespace() || DELIMITERS.contains(&byte);
        if !sample.bytes().all(is_blank) {
            choice.delimiter = absent_delimiter(sample);
        }
        return choice;
    };
    choice.delimiter = best.delimiter;
    choice.alternatives = fits
        .iter()
        .skip(1)
        .filter(|(other, _)| best.score - other.score < TIE)
        .map(|(other, _)| other.delimiter)
        .collect();
    if *division == Division::Doubtful {
        choice.alternatives.push(absent_delimiter(sample));
    }
    choice.may_be_decimals = best.delimiter == b',' && best.looks_like_decimals;
    choice
}

/// The delimiters that divide a text, the best one first.
fn fits_of(sample: &str, quote: Option<u8>) -> Vec<(Fit, Division)> {
    let single = SingleColumn::of(sample, quote);
    let fits: Vec<Fit> = DELIMITERS
        .into_iter()
        .filter_map(|delimiter| Fit::of(sample, delimiter, quote))
        .collect();
    // Text behind most quotations shows that another sign is the delimiter; behind a few it is a fault.
    let is_faulty = |fit: &Fit| fit.faults > fit.rows / 2;
    let has_other = fits.iter().any(|fit| fit.is_half && !is_faulty(fit));
    let mut divided: Vec<(Fit, Division)> = fits
        .into_iter()
        .filter(|fit| !has_other || !is_faulty(fit))
        .map(|fit| {
            let division = fit.division(&single);
            (fit, division)
        })
        .filter(|(_, division)| *division != Division::Single)
        .collect();
    // Stable: of equal ones the first stays in front.
    divided.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score));
    divided
}

/// The only delimiter that divides a line into fields which are all those of columns.
fn delimiter_of_header(sample: &str, quote: Option<u8>, target: &ImportTarget) -> Option<u8> {
    let mut found = DELIMITERS.into_iter().filter(|delimiter| {
        split(sample, *delimiter, quote).iter().any(|row| {
            let count = target.count(row.fields.iter().map(String::as_str));
            count.is_some_and(|count| count > 1)
        })
    });
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

/// A delimiter that does not occur, which leaves every line whole.
fn absent_delimiter(sample: &str) -> u8 {
    DELIMITERS
        .into_iter()
        .chain([b'\x1f'])
        .find(|delimiter| !sample.bytes().any(|byte| byte == *delimiter))
        .unwrap_or(b',')
}

/// Division of a text by a delimiter. The first line may be the header of a single column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Division {
    Columns,
    /// The first line is the title of a table, or the name of a column of such texts.
    Doubtful,
    Single,
}

/// Score of a delimiter for a text, and the table into which it divides the text.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one sign of a table, and they are weighed together"
)]
struct Fit {
    delimiter: u8,
    score: f64,
    /// Number of fields of most rows.
    width: usize,
    /// Number of rows of that width.
    count: usize,
    /// The fraction of the rows from the first to the last one of that width that have it.
    consistency: f64,
    /// True if such rows are half of the text.
    is_half: bool,
    /// True if the first line of the text has that width.
    is_first: bool,
    /// True if blank lines are above the table.
    is_apart: bool,
    /// True if the first row of that width has no values.
    has_names: bool,
    /// True if a name is above a column of values.
    has_values: bool,
    rows: usize,
    /// Number of rows with text behind the end of a quotation.
    faults: usize,
    /// True if blanks follow all delimiters, as they follow the commas of sentences.
    is_prose: bool,
    /// True if each row would also be one number with a decimal comma, with digits that a number of
    /// its own would not begin with.
    looks_like_decimals: bool,
}

impl Fit {
    /// `None` for a delimiter that divides nothing.
    fn of(sample: &str, delimiter: u8, quote: Option<u8>) -> Option<Self> {
        let rows = without_endings(split(sample, delimiter, quote));
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.fields.len() > 1) {
            *counts.entry(row.fields.len()).or_default() += 1;
        }
        // Of equally frequent widths that of the first line, else the largest: titles are narrower.
        let first_width = rows.first().map_or(0, |row| row.fields.len());
        let (width, count) = counts
            .into_iter()
            .max_by_key(|(width, count)| (*count, *width == first_width, *width))?;
        let is_in_table = |row: &SampleRow| row.fields.len() == width;
        let first = rows.iter().position(is_in_table)?;
        let last = rows.iter().rposition(is_in_table)?;
        let header = rows.get(first)?;
        // Rows of another width count too: they are rows with cells too few or too many.
        let divided = rows.get(first + 1..).unwrap_or_default();
        let cells = || {
            let divided = divided.iter().map(|row| &row.fields);
            divided.filter(|fields| fields.len() > 1).flatten()
        };
        let typed = typed_fraction(cells());
        let table: Vec<&[String]> = divided
            .iter()
            .filter(|row| is_in_table(row))
            .map(|row| row.fields.as_slice())
            .collect();
        let follows = |fields: &[String]| fields.iter().skip(1).all(|field| field.starts_with(' '));
        Some(Self {
            delimiter,
            // Half for equal widths alone, so that a table of texts has a score; titles above it cost some.
            score: fraction(count, rows.len()) * (0.5 + typed)
                - if first == 0 { 0.0 } else { 0.25 },
            width,
            count,
            consistency: fraction(count, last + 1 - first),
            is_half: count * 2 >= rows.len(),
            is_first: first == 0,
            is_apart: header.follows_blank,
            has_names: header
                .fields
                .iter()
                .all(|field| field.trim().is_empty() || !is_typed(field)),
            has_values: (0..width).any(|column| has_values(&header.fields, &table, column)),
            rows: rows.len(),
            faults: faulty(&rows),
            is_prose: follows(&header.fields) && table.iter().all(|fields| follows(fields)),
            looks_like_decimals: width == 2 && looks_like_decimals(&header.fields, &table),
        })
    }

    /// Decides between this table and a single column.
    fn division(&self, single: &SingleColumn) -> Division {
        // A quotation that ends beside this delimiter, and in a single column within a line.
        if single.faults > self.faults {
            return Division::Columns;
        }
        let by_score = if self.score >= single.score {
            Division::Columns
        } else {
            Division::Single
        };
        let is_table = self.consistency >= 0.7 && self.count >= 2;
        if self.is_first || !is_table {
            return by_score;
        }
        // `vol` above `1,5` and `2,5`.
        if !self.has_names && single.typed >= 0.8 {
            return Division::Single;
        }
        let is_sign_of_sentences = matches!(self.delimiter, b',' | b';');
        if is_sign_of_sentences && self.is_prose && !self.has_values {
            return match by_score {
                Division::Single if !self.is_half => Division::Single,
                _ => Division::Doubtful,
            };
        }
        // Many rows of equally many texts are rarely the lists of a column.
        let is_long = self.width > 2 && self.count >= 6;
        if self.has_values || !is_sign_of_sentences || self.is_apart || is_long {
            Division::Columns
        } else {
            Division::Doubtful
        }
    }
}

/// Returns whether a column of a table has a name above values.
fn has_values(header: &[String], table: &[&[String]], column: usize) -> bool {
    let is_name = header.get(column).is_some_and(|name| !is_typed(name));
    let filled = || {
        let cells = table.iter().filter_map(|fields| fields.get(column));
        cells.filter(|cell| !cell.trim().is_empty())
    };
    is_name && filled().count() > 0 && typed_fraction(filled()) >= 0.8
}

/// Returns whether two columns may be one of numbers with decimal commas.
fn looks_like_decimals(header: &[String], table: &[&[String]]) -> bool {
    // Two names are the names of two columns, unless the comma stands in a sentence: `OD, 600 nm`.
    let is_one_name = header.get(1).is_some_and(|second| second.starts_with(' '));
    let are_digits = |text: Option<&String>| {
        text.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let starts_with_zero =
        |fields: &&[String]| fields.get(1).is_some_and(|text| text.starts_with('0'));
    is_one_name
        && table
            .iter()
            .all(|row| are_digits(row.first()) && are_digits(row.get(1)))
        && table.iter().any(starts_with_zero)
}

/// The text as a single column.
#[derive(Debug)]
struct SingleColumn {
    score: f64,
    /// The fraction of its cells that are values.
    typed: f64,
    /// Number of rows with text behind the end of a quotation.
    faults: usize,
}

impl SingleColumn {
    fn of(sample: &str, quote: Option<u8>) -> Self {
        let rows = split(sample, b'\x1f', quote);
        let typed = typed_fraction(rows.iter().skip(1).flat_map(|row| &row.fields));
        let header = rows.first().and_then(|row| row.fields.first());
        let is_divided = header.is_some_and(|header| {
            let mut bytes = header.bytes();
            bytes.any(|byte| DELIMITERS.contains(&byte))
        });
        Self {
            // A delimiter in the header speaks against a single column.
            score: (0.5 + typed) * if is_divided { 0.3 } else { 0.6 },
            typed,
            faults: faulty(&rows),
        }
    }
}

fn faulty(rows: &[SampleRow]) -> usize {
    rows.iter().filter(|row| row.has_fault).count()
}

/// The fraction of these cells that are values.
fn typed_fraction<'c>(cells: impl Iterator<Item = &'c String>) -> f64 {
    let (mut typed, mut all) = (0, 0);
    for cell in cells {
        typed += usize::from(is_typed(cell));
        all += 1;
    }
    fraction(typed, all)
}

fn fraction(part: usize, whole: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if whole == 0 {
        0.0
    } else {
        number(part) / number(whole)
    }
}

/// Returns whether a cell is blank, or looks like a number, a date, a time or a boolean.
fn is_typed(cell: &str) -> bool {
    let cell = cell.trim();
    let is_moment = || {
        cell.starts_with(|first: char| first.is_ascii_digit())
            && cell.chars().all(|char| {
                char.is_ascii_digit()
                    || matches!(char, '-' | '/' | '.' | ':' | 'T' | 'Z' | '+' | ' ')
            })
    };
    cell.is_empty()
        || matches!(cell, "NA" | "N/A" | "#N/A" | "NaN" | "null")
        || cell.eq_ignore_ascii_case("true")
        || cell.eq_ignore_ascii_case("false")
        || NumberForm::of(cell).numbers != 0
        || is_moment()
}

#[cfg(test)]
mod tests;
