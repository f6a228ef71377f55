//! Options of the reading of a file, as bodies and forms have them.

use labdata_request_body::{
    Definitions, FieldPath, ProblemKind, Reader, Schema,
    fields::optional,
    readers::{list, text, unsigned},
    shape,
};
use labdata_table_formats::read::ReadOptions;
use serde_json::{Map, Value, json};

shape! {
    /// Options for reading a file. Options that are left out are found in the file, and `reading` in the
    /// response has them; sent back, the file is read the same. Other fields, such as the counts of a reading,
    /// are ignored.
    #[derive(Clone, Debug, Default)]
    pub struct ReadOptionFields {
        /// `csv` (any delimited text), `xlsx` or `parquet`; by content unless given.
        pub format: Option<String> = optional(text(..)),
        /// Encoding of a text, as the Encoding Standard names it.
        pub encoding: Option<String> = optional(text(..)),
        /// Character between the fields of a text.
        pub delimiter: Option<String> = optional(text(..)),
        /// Quotation mark of a text, `"` unless given; empty for none. Given, a quotation that looks like
        /// several rows is no doubt.
        pub quote: Option<String> = optional(text(..)),
        /// Decimal sign: `.` or `,`.
        pub decimal: Option<String> = optional(text(..)),
        /// Sign between groups of three digits: `.`, `,`, `'`, a blank, or empty for none.
        pub thousands: Option<String> = optional(text(..)),
        /// Name or number of a workbook's sheet, the first visible one with values unless given.
        pub sheet: Option<String> = optional(SheetChoice),
        /// Line or row of the header, starting at 1; 0 for a table without one.
        pub header_row: Option<u32> = optional(unsigned(0..=u32::MAX)),
        /// Last line or row of the table.
        pub last_row: Option<u32> = optional(unsigned(0..=u32::MAX)),
        /// Cells that are null, in columns of texts too; in place of an empty one, `NA`, `N/A`, `#N/A`,
        /// `NaN` and `null`, which are null in other columns.
        pub null_values: Option<Vec<String>> = optional(list(text(..)).of(0..=100)),
        /// Time zone of times without an offset, as IANA names it.
        pub timezone: Option<String> = optional(text(..).example("Europe/Berlin")),
        /// Format of dates and times besides ISO 8601, as `%d.%m.%Y %H:%M`.
        pub date_format: Option<String> = optional(text(..)),
        /// Treatment of texts in columns of numbers: `refuse` (default) or `null`.
        pub text_numbers: Option<String> = optional(text(..)),
        /// Treatment of errors of a workbook, and of formulas without a stored value: `refuse` (default)
        /// or `null`.
        pub error_cells: Option<String> = optional(text(..)),
        /// Treatment of bytes that the encoding does not have: `refuse` (default) or `replace`.
        pub invalid_bytes: Option<String> = optional(text(..)),
        /// Treatment of headers that occur more than once: `refuse` (default) or `number`.
        pub duplicate_headers: Option<String> = optional(text(..)),
    }
    example json!({"decimal": ",", "timezone": "Europe/Berlin"});
    rules |at| {
        // Each text has a separate syntax, which the reader of files knows.
        for (name, text) in [
            ("format", format),
            ("encoding", encoding),
            ("delimiter", delimiter),
            ("quote", quote),
            ("decimal", decimal),
            ("thousands", thousands),
            ("sheet", sheet),
            ("timezone", timezone),
            ("date_format", date_format),
            ("text_numbers", text_numbers),
            ("error_cells", error_cells),
            ("invalid_bytes", invalid_bytes),
            ("duplicate_headers", duplicate_headers),
        ] {
            let Some(Some(text)) = text else {
                continue;
            };
            if let Err(problem) = ReadOptions::default().set_field(name, text) {
                at.field(name).report(ProblemKind::value_error(&problem.message));
            }
        }
        if let (Some(Some(decimal)), Some(Some(thousands))) = (decimal, thousands)
            && decimal == thousands
            && !decimal.is_empty()
        {
            at.field("thousands").report(ProblemKind::value_error("must not be the decimal sign"));
        }
    }
}

/// A sheet by its name, or by its number, which the same option is.
#[derive(Clone, Copy, Debug)]
struct SheetChoice;

impl Reader for SheetChoice {
    type Output = String;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<String> {
        match value {
            Value::Number(number) if number.is_u64() => Some(number.to_string()),
            value => text(..).read(value, at),
        }
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of_types(&["string", "integer"])
    }
}

impl ReadOptionFields {
    /// The options.
    #[must_use]
    pub fn options(&self) -> ReadOptions {
        let mut object = Map::new();
        let texts = [
            ("format", &self.format),
            ("encoding", &self.encoding),
            ("delimiter", &self.delimiter),
            ("quote", &self.quote),
            ("decimal", &self.decimal),
            ("thousands", &self.thousands),
            ("sheet", &self.sheet),
            ("timezone", &self.timezone),
            ("date_format", &self.date_format),
            ("text_numbers", &self.text_numbers),
            ("error_cells", &self.error_cells),
            ("invalid_bytes", &self.invalid_bytes),
            ("duplicate_headers", &self.duplicate_headers),
        ];
        for (name, text) in texts {
            object.insert(name.to_owned(), text.clone().into());
        }
        object.insert("header_row".to_owned(), self.header_row.into());
        object.insert("last_row".to_owned(), self.last_row.into());
        object.insert(
            "null_values".to_owned(),
            Value::from(self.null_values.clone()),
        );
        // The rules have checked each of them.
        ReadOptions::from_json(&object).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use labdata_request_body::read;

    use super::*;

    #[test]
    fn a_sheet_is_a_name_or_a_number() {
        let sheet = |sheet: Value| {
            let fields = read::<ReadOptionFields>("body", json!({ "sheet": sheet }));
            fields.map(|fields| fields.options().sheet)
        };
        assert_eq!(sheet(json!(2)), Ok(Some("2".to_owned())));
        assert_eq!(sheet(json!("Plate 1")), Ok(Some("Plate 1".to_owned())));
        assert_eq!(sheet(Value::Null), Ok(None));
        for wrong in [json!(1.5), json!(-1), json!(true), json!(["1"])] {
            assert!(sheet(wrong).is_err());
        }
    }
}
