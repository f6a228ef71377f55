//! Files of any format as rows.

use std::io::{self, Read as _};

use encoding_rs::{Encoding, MACINTOSH, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253};
use labdata_domain::scalar::DataType;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    ReadError, Source,
    doubt::Doubt,
    head::Extent,
    options::{FileFormat, ReadOptions},
    parquet::open_parquet_rows,
    raw::RowSource,
    target::ImportTarget,
    text::{Because, DelimiterChoice, Improbable, open_text},
    xlsx::open_sheet_rows,
};

/// Sheet of a workbook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sheet {
    /// Its name.
    pub name: String,
    /// False for hidden ones.
    pub is_visible: bool,
    /// Number of its rows, from the first one to the last one with a value.
    pub rows: u64,
    /// Number of its columns.
    pub columns: u64,
}

/// An open file.
pub(super) struct OpenFile {
    pub(super) source: Box<dyn RowSource>,
    /// The options as they were used so far.
    pub(super) options: ReadOptions,
    pub(super) doubts: Vec<Doubt>,
    pub(super) sheets: Option<Vec<Sheet>>,
    /// The table of a file that names and types its columns itself.
    pub(super) typed: Option<TypedTable>,
}

/// Table of a file that names and types its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TypedTable {
    pub(super) columns: Vec<TypedColumn>,
    pub(super) rows: usize,
}

/// Column with a name and a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TypedColumn {
    pub(super) name: String,
    pub(super) data_type: DataType,
    /// True for texts that are times without an offset.
    pub(super) is_local_time: bool,
    /// True for elapsed times, whose values are seconds.
    pub(super) is_duration: bool,
    /// The unit that the file notes for the column.
    pub(super) noted_unit: Option<String>,
}

/// Returns whether a file is a workbook or Parquet by its first bytes: both may hold far more than their size.
///
/// # Errors
/// Those of the source.
pub fn is_archive(source: &mut dyn Source) -> io::Result<bool> {
    Ok(format_of(source)? != FileFormat::Csv)
}

/// The format of a file by its first bytes.
fn format_of(source: &mut dyn Source) -> io::Result<FileFormat> {
    let mut start = Vec::new();
    source.rewind()?;
    (&mut *source).take(4).read_to_end(&mut start)?;
    source.rewind()?;
    Ok(match start.as_slice() {
        b"PK\x03\x04" | b"\xd0\xcf\x11\xe0" => FileFormat::Xlsx,
        b"PAR1" => FileFormat::Parquet,
        _ => FileFormat::Csv,
    })
}

/// Opens a file of the format that its content has, or that the options say.
pub(super) fn open_file(
    mut source: Box<dyn Source>,
    mut options: ReadOptions,
    extent: Extent,
    target: Option<&ImportTarget>,
) -> Result<OpenFile, ReadError> {
    let format = match options.format {
        Some(format) => format,
        None => format_of(&mut *source)?,
    };
    options.format = Some(format);
    if format != FileFormat::Xlsx && options.sheet.is_some() {
        return Err(ReadError::NoSheets);
    }
    // The reading reports options as they were used, and these were not.
    if format != FileFormat::Csv {
        options.encoding = None;
        options.delimiter = None;
        options.quote = None;
    }
    match format {
        FileFormat::Csv => {
            let text = open_text(source, &mut options, extent, target)?;
            let encoding = text.improbable.as_ref();
            let encoding = encoding.map(|it| encoding_doubt(it, options.encoding));
            let delimiter = delimiter_doubt(&text.delimiter);
            Ok(OpenFile {
                source: text.rows,
                options,
                doubts: encoding.into_iter().chain(delimiter).collect(),
                sheets: None,
                typed: None,
            })
        }
        FileFormat::Xlsx => {
            let (source, sheet, sheets) =
                open_sheet_rows(source, options.sheet.as_deref(), extent)?;
            options.sheet = Some(sheet);
            Ok(OpenFile {
                source,
                options,
                doubts: Vec::new(),
                sheets: Some(sheets),
                typed: None,
            })
        }
        FileFormat::Parquet => {
            let (source, typed) = open_parquet_rows(source)?;
            // Parquet has no lines, and its numbers are no texts.
            options.header_row = None;
            options.last_row = None;
            options.decimal = None;
            options.thousands = None;
            Ok(OpenFile {
                source,
                options,
                doubts: Vec::new(),
                sheets: None,
                typed: Some(typed),
            })
        }
    }
}

fn encoding_doubt(improbable: &Improbable, found: Option<&'static Encoding>) -> Doubt {
    let found = found.unwrap_or(WINDOWS_1252);
    let others: &[&'static Encoding] = match improbable.because {
        Because::OldSystem => &[MACINTOSH, WINDOWS_1252],
        Because::FewLetters => &[WINDOWS_1252, WINDOWS_1250, WINDOWS_1251, WINDOWS_1253],
    };
    let others = others.iter().filter(|other| **other != found);
    let encodings: Vec<_> = std::iter::once(&found).chain(others).collect();
    let message = match improbable.because {
        Because::OldSystem => format!(
            "in {} the file has \"{}\", so that it may be in an encoding of DOS or of the Mac; save one of DOS as UTF-8",
            found.name(),
            improbable.word_in(found)
        ),
        Because::FewLetters => {
            let word = |it: &&&'static Encoding| {
                format!("\"{}\" in {}", improbable.word_in(it), it.name())
            };
            let words: Vec<String> = encodings.iter().map(word).collect();
            format!(
                "the file has too few letters of its alphabet to tell its encoding: {}",
                words.join(", ")
            )
        }
    };
    let options = encodings.iter().map(|it| json!({"encoding": it.name()}));
    Doubt::table("encoding", "encoding", message, options.collect())
}

fn delimiter_doubt(choice: &DelimiterChoice) -> Option<Doubt> {
    let sign = |byte: u8| char::from(byte).to_string();
    if choice.may_be_decimals {
        return Some(Doubt::table(
            "delimiter",
            "delimiter",
            "the commas may separate two columns, or the decimals of one",
            vec![
                json!({"delimiter": ","}),
                json!({"delimiter": "\t", "decimal": ","}),
            ],
        ));
    }
    if choice.alternatives.is_empty() {
        return None;
    }
    let signs = std::iter::once(choice.delimiter).chain(choice.alternatives.iter().copied());
    Some(Doubt::table(
        "delimiter",
        "delimiter",
        "the file can be divided into columns in several ways",
        signs.map(|byte| json!({"delimiter": sign(byte)})).collect(),
    ))
}
