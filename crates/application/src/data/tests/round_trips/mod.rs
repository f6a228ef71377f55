//! Random tables, written in many dialects and as a workbook, are imported as they are, or refused.
//!
//! The seed is fixed; `LABDATA_ROUND_TRIP_SEED` gives another one.

mod tables;

use std::{
    fmt::Write as _,
    io::{Cursor, Write as _},
};

use labdata_domain::{scalar::Scalar, timestamp};
use labdata_table_formats::read::ReadOptions;
use time::UtcOffset;
use zip::{ZipWriter, write::SimpleFileOptions};

use self::tables::{Random, Rows};
use super::import_file;

/// Number of random tables.
const TABLES: u64 = 500;

/// A way to write a delimited text.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    delimiter: char,
    line_end: &'static str,
    quotes_all: bool,
    decimal: char,
    thousands: Option<char>,
    encoding: Encoding,
    /// Lines above the header.
    above: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf8Marked,
    Utf16Le,
    Utf16Be,
    /// Without characters that Latin-1 does not have.
    Windows1252,
}

const PLAIN: Dialect = Dialect {
    delimiter: ',',
    line_end: "\n",
    quotes_all: false,
    decimal: '.',
    thousands: None,
    encoding: Encoding::Utf8,
    above: "",
};

const GERMAN: Dialect = Dialect {
    delimiter: ';',
    decimal: ',',
    ..PLAIN
};

const DIALECTS: [Dialect; 12] = [
    PLAIN,
    Dialect {
        line_end: "\r\n",
        quotes_all: true,
        ..PLAIN
    },
    Dialect {
        line_end: "\r",
        ..PLAIN
    },
    Dialect {
        delimiter: '\t',
        ..PLAIN
    },
    Dialect {
        delimiter: '|',
        line_end: "\r\n",
        ..PLAIN
    },
    Dialect {
        encoding: Encoding::Utf8Marked,
        ..PLAIN
    },
    GERMAN,
    Dialect {
        thousands: Some('.'),
        line_end: "\r\n",
        ..GERMAN
    },
    Dialect {
        thousands: Some(' '),
        encoding: Encoding::Windows1252,
        ..GERMAN
    },
    Dialect {
        encoding: Encoding::Utf16Le,
        delimiter: '\t',
        line_end: "\r\n",
        ..GERMAN
    },
    Dialect {
        encoding: Encoding::Utf16Be,
        thousands: Some('\''),
        delimiter: ';',
        ..PLAIN
    },
    Dialect {
        above: "sep=;\n",
        quotes_all: true,
        ..GERMAN
    },
];

impl Dialect {
    fn number(self, text: &str) -> String {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let (sign, digits) = whole
            .strip_prefix('-')
            .map_or(("", whole), |rest| ("-", rest));
        let mut grouped = sign.to_owned();
        for (index, digit) in digits.chars().enumerate() {
            let is_start = index > 0 && (digits.len() - index) % 3 == 0;
            if is_start && !digits.contains('e') {
                grouped.extend(self.thousands);
            }
            grouped.push(digit);
        }
        if !fraction.is_empty() {
            grouped.push(self.decimal);
            grouped.push_str(fraction);
        }
        grouped
    }

    fn field(self, cell: Option<&Scalar>) -> String {
        let text = match cell {
            None => return String::new(),
            Some(Scalar::Text(text)) => text.clone(),
            Some(Scalar::Integer(number)) => self.number(&number.to_string()),
            Some(Scalar::Float(number)) => self.number(&float_text(*number)),
            Some(scalar) => plain(scalar),
        };
        let signs = [self.delimiter, '"', '\n', '\r'];
        let is_empty_text = text.is_empty() || text.starts_with([' ', '\u{a0}']);
        if self.quotes_all || is_empty_text || text.contains(signs) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        }
    }

    fn file(self, table: &Rows) -> Vec<u8> {
        let mut text = self.above.to_owned();
        let names: Vec<String> = (0..table.types.len())
            .map(|index| format!("column {index}"))
            .collect();
        text.push_str(&names.join(&self.delimiter.to_string()));
        text.push_str(self.line_end);
        for row in &table.rows {
            let fields: Vec<String> = row.iter().map(|cell| self.field(cell.as_ref())).collect();
            text.push_str(&fields.join(&self.delimiter.to_string()));
            text.push_str(self.line_end);
        }
        let wide = |bytes: fn(u16) -> [u8; 2]| {
            let marked = std::iter::once(0xfeff).chain(text.encode_utf16());
            marked.flat_map(bytes).collect()
        };
        match self.encoding {
            Encoding::Utf8 => text.into_bytes(),
            Encoding::Utf8Marked => format!("\u{feff}{text}").into_bytes(),
            Encoding::Utf16Le => wide(u16::to_le_bytes),
            Encoding::Utf16Be => wide(u16::to_be_bytes),
            Encoding::Windows1252 => text
                .chars()
                .map(|char| u8::try_from(char).unwrap())
                .collect(),
        }
    }

    /// A text that the dialect can hold. Two letters beyond ASCII side by side, such as `ßµ`, are UTF-8 or
    /// Chinese as well, and are not in use.
    fn fit(self, text: &str) -> String {
        if self.encoding != Encoding::Windows1252 {
            return text.to_owned();
        }
        let mut fitting = String::new();
        for char in text.chars() {
            let is_beside = fitting
                .chars()
                .next_back()
                .is_some_and(|last| !last.is_ascii());
            let is_wrong = u32::from(char) > 255 || is_beside && !char.is_ascii();
            fitting.push(if is_wrong { '?' } else { char });
        }
        fitting
    }
}

/// A float in the form that most programs write.
fn float_text(number: f64) -> String {
    if number != 0.0 && !(1e-6..1e15).contains(&number.abs()) {
        format!("{number:e}")
    } else {
        number.to_string()
    }
}

fn plain(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Boolean(flag) => flag.to_string(),
        Scalar::Date(date) => timestamp::render_date(*date),
        Scalar::Datetime(at) => timestamp::render(at.to_offset(UtcOffset::UTC)),
        Scalar::Uuid(id) => id.to_string(),
        other => panic!("{other:?} has a form of the dialect"),
    }
}

/// A workbook with the table in its only sheet: numbers and booleans as such, where a number of Excel holds
/// them, and all else as texts.
fn workbook(table: &Rows) -> Vec<u8> {
    let text = |text: &str| {
        let escaped = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('\r', "&#13;");
        format!("<c t=\"inlineStr\"><is><t xml:space=\"preserve\">{escaped}</t></is></c>")
    };
    let mut rows = String::from("<row>");
    (0..table.types.len()).for_each(|index| rows.push_str(&text(&format!("column {index}"))));
    rows.push_str("</row>");
    for row in &table.rows {
        rows.push_str("<row>");
        for cell in row {
            let cell = match cell {
                None => "<c/>".to_owned(),
                Some(Scalar::Text(value)) => text(value),
                Some(Scalar::Integer(number)) if number.unsigned_abs() <= 1 << 53 => {
                    format!("<c><v>{number}</v></c>")
                }
                Some(Scalar::Integer(number)) => text(&number.to_string()),
                Some(Scalar::Float(number)) => format!("<c><v>{}</v></c>", float_text(*number)),
                Some(Scalar::Boolean(flag)) => format!("<c t=\"b\"><v>{}</v></c>", u8::from(*flag)),
                Some(other) => text(&plain(other)),
            };
            rows.push_str(&cell);
        }
        rows.push_str("</row>");
    }
    package(&rows, "<styleSheet/>")
}

/// A workbook with these rows and styles.
pub(super) fn package(rows: &str, styles: &str) -> Vec<u8> {
    const TYPES: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    const RELATIONS: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
    let relation = |target: &str, kind: &str| {
        format!(
            "<Relationships xmlns=\"{RELATIONS}\"><Relationship Id=\"rId1\" Target=\"{target}\" \
             Type=\"{TYPES}/{kind}\"/></Relationships>"
        )
    };
    let mut book = String::new();
    write!(
        book,
        "<workbook xmlns:r=\"{TYPES}\"><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
    )
    .unwrap();
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in [
        ("_rels/.rels", relation("xl/workbook.xml", "officeDocument")),
        ("xl/workbook.xml", book),
        ("xl/styles.xml", styles.to_owned()),
        (
            "xl/_rels/workbook.xml.rels",
            relation("worksheets/sheet1.xml", "worksheet"),
        ),
        ("xl/worksheets/sheet1.xml", sheet),
    ] {
        writer.start_file(name, options).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Imports a file into a table of these types; `None` if it is refused.
fn imported(bytes: Vec<u8>, table: &Rows) -> Option<Vec<Vec<Option<Scalar>>>> {
    let names: Vec<String> = (0..table.types.len())
        .map(|index| format!("column_{index}"))
        .collect();
    let columns = names.iter().map(String::as_str);
    let columns: Vec<_> = columns.zip(table.types.iter().copied()).collect();
    import_file(bytes, &columns, ReadOptions::default()).ok()
}

/// A table as a file can hold it.
fn expected(table: &Rows, fit: impl Fn(&str) -> Option<String>) -> Rows {
    let rows = table.rows.iter().map(|row| {
        let cells = row.iter().map(|cell| match cell {
            Some(Scalar::Text(text)) => fit(text).map(Scalar::Text),
            cell => cell.clone(),
        });
        cells.collect()
    });
    Rows {
        types: table.types.clone(),
        rows: rows.collect(),
    }
}

fn seed() -> u64 {
    let given = std::env::var("LABDATA_ROUND_TRIP_SEED").ok();
    given.map_or(20_260_301, |seed| seed.parse().expect("a number"))
}

/// Checks that the file holds the table or is refused; returns whether it was imported.
#[track_caller]
fn is_imported(bytes: Vec<u8>, table: &Rows, name: &str, number: u64) -> bool {
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let Some(found) = imported(bytes, table) else {
        return false;
    };
    assert_eq!(
        found,
        table.rows,
        "seed {}, table {number}, {name}:\n{text}",
        seed()
    );
    true
}

#[test]
fn a_table_is_imported_as_it_was_written_or_refused() {
    let mut random = Random(seed());
    let mut accepted = [0; DIALECTS.len() + 1];
    for number in 0..TABLES {
        let table = random.table();
        for (dialect, count) in DIALECTS.iter().zip(&mut accepted) {
            let table = expected(&table, |text| Some(dialect.fit(text)));
            let name = format!("{dialect:?}");
            *count += u64::from(is_imported(dialect.file(&table), &table, &name, number));
        }
        // A cell of a sheet that displays nothing is blank.
        let table = expected(&table, |text| {
            (!text.trim().is_empty()).then(|| text.to_owned())
        });
        let bytes = workbook(&table);
        *accepted.last_mut().unwrap() += u64::from(is_imported(bytes, &table, "XLSX", number));
    }
    // A reader that refuses everything would hold the rest.
    for (index, count) in accepted.iter().enumerate() {
        assert!(
            *count > TABLES * 3 / 5,
            "dialect {index}: {count} of {TABLES}; {accepted:?}"
        );
    }
}
