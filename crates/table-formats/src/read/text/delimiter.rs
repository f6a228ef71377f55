//! Detection of the delimiter.
//!
//! Published sniffers return a best guess. This one also returns the delimiters that fit as well,
//! because then a person has to choose.

use std::collections::BTreeMap;

use crate::read::{number::NumberForm, options::ReadOptions};

/// Delimiters that are tried, in order of preference.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// Number of lines that decide.
const SAMPLE_LINES: usize = 300;

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
pub(super) fn find_delimiter(sample: &str, options: &ReadOptions) -> DelimiterChoice {
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
    let mut fits: Vec<Fit> = DELIMITERS
        .into_iter()
        .filter_map(|delimiter| Fit::of(sample, delimiter, quote))
        .collect();
    // Stable: of equal ones the first stays in front.
    fits.sort_by(|a, b| b.score.total_cmp(&a.score));
    let single = single_column(sample, quote);
    let Some(best) = fits.first().filter(|best| best.score >= single) else {
        let is_blank = |byte: u8| byte.is_ascii_whitespace() || DELIMITERS.contains(&byte);
        if sample.bytes().all(is_blank) {
            return choice;
        }
        // A delimiter that does not occur leaves every line whole.
        let absent = DELIMITERS
            .into_iter()
            .chain([b'\x1f'])
            .find(|delimiter| !sample.bytes().any(|byte| byte == *delimiter));
        choice.delimiter = absent.unwrap_or(b',');
        return choice;
    };
    choice.delimiter = best.delimiter;
    choice.alternatives = fits
        .iter()
        .skip(1)
        .filter(|other| best.score - other.score < TIE)
        .map(|other| other.delimiter)
        .collect();
    choice.may_be_decimals = best.delimiter == b',' && best.looks_like_decimals;
    choice
}

/// Returns the delimiter that a first line `sep=;` names, which Excel reads and writes.
fn sep_line(sample: &str) -> Option<u8> {
    let line = sample.lines().next()?.trim_end_matches('\r');
    let line = line.trim_matches('"');
    let start = line.get(..4)?;
    match line.as_bytes().get(4..)? {
        [sign] if start.eq_ignore_ascii_case("sep=") && sign.is_ascii() => Some(*sign),
        _ => None,
    }
}

/// Score of a delimiter for a text.
#[derive(Debug)]
struct Fit {
    delimiter: u8,
    score: f64,
    /// True if each row would also be one number with a decimal comma, with digits that a number of
    /// its own would not begin with.
    looks_like_decimals: bool,
}

impl Fit {
    /// `None` for a delimiter that divides nothing.
    fn of(sample: &str, delimiter: u8, quote: Option<u8>) -> Option<Self> {
        let rows = split(sample, delimiter, quote);
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.len() > 1) {
            *counts.entry(row.len()).or_default() += 1;
        }
        // Of equally frequent widths that of the first line, else the largest: titles are narrower.
        let first = rows.first().map_or(0, Vec::len);
        let (width, count) = counts
            .into_iter()
            .max_by_key(|(width, count)| (*count, *width == first, *width))?;
        let mut table = rows.iter().filter(|row| row.len() == width);
        table.next()?;
        // Rows of another width count too: they are rows with cells too few or too many.
        let header = rows.iter().position(|row| row.len() == width)?;
        let divided = rows.get(header + 1..).unwrap_or_default();
        let cells = || divided.iter().filter(|row| row.len() > 1).flatten();
        let typed = fraction(
            cells().filter(|cell| is_typed(cell)).count(),
            cells().count(),
        );
        let coverage = fraction(count, rows.len());
        let is_first = rows.first().is_some_and(|row| row.len() == width);
        let pairs = || table.clone().map(|row| (row.first(), row.get(1)));
        let are_digits = |text: Option<&String>| {
            text.is_some_and(|text| {
                !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        let looks_like_decimals = width == 2
            && pairs().all(|(first, second)| are_digits(first) && are_digits(second))
            && pairs().any(|(_, second)| second.is_some_and(|text| text.starts_with('0')));
        Some(Self {
            delimiter,
            // Half for equal widths alone, so that a table of texts has a score; titles above it cost some.
            score: coverage * (0.5 + typed) - if is_first { 0.0 } else { 0.25 },
            looks_like_decimals,
        })
    }
}

/// Returns how well the text is a single column.
fn single_column(sample: &str, quote: Option<u8>) -> f64 {
    let rows = split(sample, b'\x1f', quote);
    let cells = || rows.iter().skip(1).flatten();
    let typed = fraction(
        cells().filter(|cell| is_typed(cell)).count(),
        cells().count(),
    );
    let header = rows.first().and_then(|row| row.first());
    let is_divided = header.is_some_and(|header| {
        let mut bytes = header.bytes();
        bytes.any(|byte| DELIMITERS.contains(&byte))
    });
    // A delimiter in the header speaks against a single column.
    (0.5 + typed) * if is_divided { 0.3 } else { 0.6 }
}

fn fraction(part: usize, whole: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if whole == 0 {
        0.0
    } else {
        number(part) / number(whole)
    }
}

/// Returns whether a cell is blank, or looks like a number, a date or a time.
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
        || NumberForm::of(cell).numbers != 0
        || is_moment()
}

/// Divides a sample into rows that are not blank, as the reader does.
fn split(sample: &str, delimiter: u8, quote: Option<u8>) -> Vec<Vec<String>> {
    let delimiter = char::from(delimiter);
    let quote = quote.map(char::from);
    let mut rows = Vec::new();
    let mut row: Vec<String> = Vec::new();
    let mut field = String::new();
    let mut chars = sample.chars().peekable();
    let mut is_quoted = false;
    let mut end_row = |row: &mut Vec<String>, field: &mut String| {
        row.push(std::mem::take(field));
        let full = std::mem::take(row);
        if full.iter().any(|field| !field.trim().is_empty()) {
            rows.push(full);
        }
        rows.len() < SAMPLE_LINES
    };
    let mut is_start = true;
    while let Some(char) = chars.next() {
        if is_quoted {
            if Some(char) != quote {
                field.push(char);
            } else if chars.peek() == Some(&char) {
                field.push(char);
                chars.next();
            } else {
                is_quoted = false;
            }
            continue;
        }
        if Some(char) == quote && is_start {
            is_quoted = true;
            is_start = false;
        } else if char == delimiter {
            row.push(std::mem::take(&mut field));
            is_start = true;
        } else if matches!(char, '\n' | '\r') {
            // The row between `\r` and `\n` is blank, and not counted.
            is_start = true;
            if !end_row(&mut row, &mut field) {
                return rows;
            }
        } else {
            is_start = false;
            field.push(char);
        }
    }
    end_row(&mut row, &mut field);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(sample: &str) -> DelimiterChoice {
        find_delimiter(sample, &ReadOptions::default())
    }

    #[track_caller]
    fn is(sample: &str, delimiter: char) {
        let choice = choice(sample);
        assert_eq!(char::from(choice.delimiter), delimiter, "{sample:?}");
        assert!(choice.alternatives.is_empty(), "{sample:?}");
        assert!(!choice.may_be_decimals, "{sample:?}");
    }

    #[test]
    fn the_delimiter_is_the_one_that_fits() {
        for sample in [
            "a,b\n1,2\n",
            "name,note\nA,\"x; y; z\"\n",
            "Run ID,17\nProtocol,demo\n\nwell,od,note\nA1,0.5,ok\n",
            "a,b,c\n1,2\n",
            "name,volume\na,1,2\n",
            "alone\n1\n2\n",
            "",
        ] {
            is(sample, ',');
        }
        is("a\tb\n1\t2\n", '\t');
        is("a\tb\n1,5\t2,5\n", '\t');
        is("a|b\n1|2\n", '|');
        for sample in [
            "a;b\n1;2\n",
            "name;vol\nA1;1,5\nA2;2,25\n",
            "Zeit;OD, 600 nm\n0;0,05\n30;0,08\n60;0,13\n",
            "Zeit, s;OD, nm\n0,5;0,05\n1,5;0,08\n",
            "id;note\n1;hello, world\n2;good, bye\n3;so, it, goes\n",
            "name, first;age\nSmith, John;30\nDoe, Jane;31\n",
            "at;od\n05.03.2024 14:22;0,05\n05.03.2024 14:23;0,06\n",
        ] {
            is(sample, ';');
        }
    }

    #[test]
    fn a_single_column_is_not_divided() {
        let one = choice("vol\n1,5\n2,5\n");
        assert_ne!(one.delimiter, b',');
        let texts = choice("note\nhello, world\nand more\n");
        assert_ne!(texts.delimiter, b',');
    }

    #[test]
    fn delimiters_that_fit_equally_well_are_a_doubt() {
        let tie = choice("a,b;c\nx,y;z\nu,v;w\n");
        assert_eq!((tie.delimiter, tie.alternatives), (b',', vec![b';']));
        assert!(choice("OD, 600 nm\n0,05\n0,08\n").may_be_decimals);
        assert!(!choice("a,b\n1,2\n3,4\n").may_be_decimals);
    }

    #[test]
    fn a_first_line_may_name_the_delimiter() {
        for sample in ["sep=;\nname;vol\nA1;1,5\n", "\"SEP=;\"\r\na;b\r\n"] {
            let choice = choice(sample);
            assert_eq!((choice.delimiter, choice.has_sep_line), (b';', true));
        }
        assert!(!choice("sepal;length\n1;2\n").has_sep_line);
    }
}
