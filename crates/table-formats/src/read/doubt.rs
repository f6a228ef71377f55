//! Doubts about a table: points that an import would have to guess, or refuses.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    ReadError,
    date::render_duration,
    number::NumberStyle,
    raw::{RawRow, RowFault},
    text::DELIMITERS,
};

/// Maximum number of rows with a fault that are reported one by one.
pub(super) const MAX_ROW_DOUBTS: usize = 20;

/// Maximum number of doubts that a refusal names.
const MAX_MESSAGES: usize = 5;

/// Consequence of a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DoubtScope {
    /// The table cannot be believed until the doubt is settled.
    Table,
    /// A row or a cell cannot be believed.
    Row,
    /// A column stays a text, which an import into a column of another type refuses.
    Column,
}

/// A question about the reading of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// Option, column (`columns.od`) or row (`rows[17]`) that it concerns.
    pub path: String,
    /// Stable word for its kind.
    pub code: Cow<'static, str>,
    /// The doubt, and how to settle it.
    pub message: String,
    /// Alternatives: each an object of options that settles it.
    pub options: Vec<Map<String, Value>>,
    /// Consequence.
    pub scope: DoubtScope,
    /// Indices of the columns that it concerns; empty for all.
    pub columns: Vec<usize>,
}

impl Doubt {
    pub(super) fn table(
        path: &str,
        code: &'static str,
        message: impl Into<String>,
        options: Vec<Value>,
    ) -> Self {
        let options = options.into_iter();
        let options = options.filter_map(|option| match option {
            Value::Object(object) => Some(object),
            _ => None,
        });
        Self {
            path: path.to_owned(),
            code: code.into(),
            message: message.into(),
            options: options.collect(),
            scope: DoubtScope::Table,
            columns: Vec::new(),
        }
    }

    pub(super) fn row(line: u64, problem: RowProblem) -> Self {
        Self {
            scope: DoubtScope::Row,
            ..Self::table(
                &format!("rows[{line}]"),
                problem.code,
                problem.message,
                problem.options,
            )
        }
    }

    pub(super) fn column(
        header: &str,
        code: &'static str,
        message: impl Into<String>,
        options: Vec<Value>,
    ) -> Self {
        Self {
            scope: DoubtScope::Column,
            ..Self::table(&format!("columns.{header}"), code, message, options)
        }
    }

    /// The message, with the options that settle the doubt.
    #[must_use]
    pub fn advice(&self) -> String {
        let options: Vec<String> = self
            .options
            .iter()
            .map(|option| Value::Object(option.clone()).to_string())
            .collect();
        if options.is_empty() {
            self.message.clone()
        } else {
            format!("{}; choose {}", self.message, options.join(" or "))
        }
    }

    /// Renders path, code, message and options.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "path": self.path,
            "code": self.code,
            "message": self.message,
            "options": self.options,
        })
    }
}

/// Checks that none of the doubts forbids to use the table.
pub(super) fn check(doubts: &[Doubt]) -> Result<(), ReadError> {
    let refusals = doubts.iter();
    let refusals = refusals.filter(|doubt| doubt.scope != DoubtScope::Column);
    let messages: Vec<String> = refusals.map(Doubt::advice).take(MAX_MESSAGES).collect();
    if messages.is_empty() {
        Ok(())
    } else {
        Err(ReadError::Doubtful(messages.join("; ")))
    }
}

/// Why a row cannot be believed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowProblem {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) options: Vec<Value>,
}

impl RowProblem {
    /// The problem of a row of delimited text.
    pub(super) fn of_fault(fault: RowFault, encoding: &str) -> Self {
        match fault {
            RowFault::UnclosedQuote(line) => Self {
                code: "quotation_mark",
                message: format!("the quotation mark that opens on line {line} is never closed"),
                options: vec![json!({"quote": ""})],
            },
            RowFault::TextAfterQuote { line, next } => Self {
                code: "quotation_mark",
                message: format!("text follows the end of the quotation that opens on line {line}"),
                options: DELIMITERS
                    .contains(&next)
                    .then(|| json!({"delimiter": char::from(next).to_string()}))
                    .into_iter()
                    .chain([json!({"quote": ""})])
                    .collect(),
            },
            RowFault::InvalidBytes => Self {
                code: "invalid_bytes",
                message: format!("the line has bytes that are not {encoding}"),
                options: vec![
                    json!({"invalid_bytes": "replace"}),
                    json!({"encoding": "windows-1252"}),
                ],
            },
        }
    }

    pub(super) fn vanished_rows(line: u64) -> Self {
        Self {
            code: "quotation_mark",
            message: format!(
                "the quotation mark that opens on line {line} closes in a later row; perhaps it \
                 is no quotation"
            ),
            options: vec![json!({"quote": "\""}), json!({"quote": ""})],
        }
    }

    pub(super) fn long_row(line: u64, found: usize, expected: usize) -> Self {
        Self {
            code: "long_row",
            message: format!("line {line} has {found} fields, but the header has {expected}"),
            options: Vec::new(),
        }
    }

    pub(super) fn beside(line: u64, column: usize) -> Self {
        Self {
            code: "long_row",
            message: format!(
                "row {line} has a value in column {column}, which has no name in the header"
            ),
            options: Vec::new(),
        }
    }

    pub(super) fn merged(line: u64) -> Self {
        Self {
            code: "merged_row",
            message: format!("row {line} is one cell that is merged over several columns"),
            options: Vec::new(),
        }
    }

    pub(super) fn repeated_header(line: u64) -> Self {
        Self {
            code: "second_table",
            message: format!("line {line} is the header once more; remove it from the file"),
            options: Vec::new(),
        }
    }

    /// The problem of a cell that is no value of its column's type.
    pub(super) fn unfit_cell(line: u64, header: &str, message: &str) -> Self {
        Self {
            code: "cell_value",
            message: format!("row {line}: \"{header}\" {message}"),
            options: Vec::new(),
        }
    }

    /// The problem of a number that a text column would store in another form than a person sees.
    pub(super) fn labeled_number(row: &RawRow, number: f64) -> Self {
        Self {
            code: "number_format",
            message: format!(
                "row {}: the workbook shows the number {number} with characters of its format, which \
                 a text column would lose; enter it as a text",
                row.line
            ),
            options: Vec::new(),
        }
    }

    /// The problem of a number that a workbook shows with characters that are not the unit of its column.
    pub(super) fn other_label(row: &RawRow, number: f64, label: &str, unit: Option<&str>) -> Self {
        let unit = unit.map_or_else(
            || "and its column has no unit".to_owned(),
            |unit| format!("which is not the unit of its column, {unit}"),
        );
        Self {
            code: "number_format",
            message: format!(
                "row {}: the workbook shows the number {number} with \"{label}\" of its format, {unit}; enter the number \
                 without the format, in the unit of the column",
                row.line
            ),
            options: vec![json!({"text_numbers": "null"})],
        }
    }

    /// The problem of a percentage among plain numbers, or in a column of another unit.
    pub(super) fn percentage(row: &RawRow, percentage: f64, other_unit: Option<&str>) -> Self {
        let why = other_unit.map_or_else(
            || {
                "others of its column are plain numbers, which may be fractions or percentages; \
                 write % behind the header, or enter all of them in one way"
                    .to_owned()
            },
            |unit| format!("the values of its column are in {unit}; enter it in this unit"),
        );
        Self {
            code: "number_format",
            message: format!("row {}: the cell shows {percentage}%, but {why}", row.line),
            options: Vec::new(),
        }
    }

    /// The problem of a time in a column that has plain numbers besides.
    pub(super) fn time_among_numbers(row: &RawRow, micros: i64) -> Self {
        Self {
            code: "cell_value",
            message: format!(
                "row {}: the cell is the time {}, which is read as seconds, but others of its column \
                 are plain numbers, whose unit may be another; enter all of them in one way",
                row.line,
                render_duration(micros)
            ),
            options: Vec::new(),
        }
    }

    pub(super) fn error_cell(row: &RawRow, text: Option<&str>) -> Self {
        let what = match text {
            Some(text) => format!("the cell has the error {text}"),
            None => "the cell has a formula whose value is not in the file; open and save the \
                     file in Excel"
                .to_owned(),
        };
        Self {
            code: "error_cell",
            message: format!("row {}: {what}", row.line),
            options: vec![json!({"error_cells": "null"})],
        }
    }
}

/// The options of a style.
pub(super) fn style_options(style: NumberStyle) -> Value {
    let thousands = style.thousands.map(String::from).unwrap_or_default();
    json!({"decimal": style.decimal.as_str(), "thousands": thousands})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_first_doubts_and_how_to_settle_them() {
        let doubt = |number: u8| {
            let option = json!({"header_row": number});
            Doubt::table(
                "header_row",
                "header_row",
                format!("doubt {number}"),
                vec![option],
            )
        };
        assert!(check(&[]).is_ok());
        let column = Doubt::column("od", "text_numbers", "a text", Vec::new());
        assert_eq!((&*column.path, &*column.advice()), ("columns.od", "a text"));
        assert!(check(&[column]).is_ok());
        let long = Doubt::row(3, RowProblem::long_row(3, 4, 2));
        assert_eq!((long.scope, &*long.path), (DoubtScope::Row, "rows[3]"));
        let refused = check(&[long, doubt(1)]).unwrap_err().to_string();
        let expected =
            "line 3 has 4 fields, but the header has 2; doubt 1; choose {\"header_row\":1}";
        assert!(refused.contains(expected), "{refused}");
        let many: Vec<Doubt> = (1..9).map(doubt).collect();
        let refused = check(&many).unwrap_err().to_string();
        assert!(
            refused.contains("doubt 5") && !refused.contains("doubt 6"),
            "{refused}"
        );
    }

    #[test]
    fn text_behind_a_quotation_may_be_a_delimiter() {
        let options = |next| {
            let fault = RowFault::TextAfterQuote { line: 2, next };
            RowProblem::of_fault(fault, "UTF-8").options
        };
        let none = json!({"quote": ""});
        assert_eq!(options(b';'), [json!({"delimiter": ";"}), none.clone()]);
        assert_eq!(options(b'x'), [none]);
    }
}
