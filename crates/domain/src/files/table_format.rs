//! Formats of files that hold a table.

use super::FilePath;

use crate::refusal::{ErrorCode, Refuse};

/// Maximum size of a file whose table is displayed, in bytes.
pub const MAX_SHOWN_TABLE_BYTES: u64 = 100 << 20;

/// Maximum number of rows of a file whose table is displayed.
pub const MAX_SHOWN_TABLE_ROWS: usize = 1_000_000;

/// Why the table of a file cannot be displayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShowTableRefusal {
    /// The name has no extension of a table.
    #[error(
        "tables are files with the extension .csv, .tsv, .xlsx or .parquet; this file is named \"{0}\""
    )]
    UnknownFormat(String),
    /// The file is larger than [`MAX_SHOWN_TABLE_BYTES`].
    #[error("the file is larger than {} MiB; make a dataset of it", MAX_SHOWN_TABLE_BYTES >> 20)]
    TooLarge,
}

impl Refuse for ShowTableRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownFormat(_) => ErrorCode::UnknownFormat,
            Self::TooLarge => ErrorCode::FileTooLarge,
        }
    }
}

/// Format of a file that holds a table, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableFormat {
    /// Fields separated by commas, semicolons, tabs or bars.
    Csv,
    /// Fields separated by tabs.
    Tsv,
    /// A workbook, of which the first sheet counts.
    Xlsx,
    /// Parquet.
    Parquet,
}

impl TableFormat {
    /// All formats with their extensions.
    pub const ALL: [(&'static str, Self); 4] = [
        ("csv", Self::Csv),
        ("tsv", Self::Tsv),
        ("xlsx", Self::Xlsx),
        ("parquet", Self::Parquet),
    ];

    /// Returns the format of a file whose table is to be displayed.
    ///
    /// # Errors
    /// [`ShowTableRefusal`].
    pub fn display(path: &FilePath, size: u64) -> Result<Self, ShowTableRefusal> {
        let format = Self::of(path).ok_or_else(|| Self::unknown(path))?;
        if size > MAX_SHOWN_TABLE_BYTES {
            return Err(ShowTableRefusal::TooLarge);
        }
        Ok(format)
    }

    /// The refusal of a file whose name has no extension of a table.
    #[must_use]
    pub fn unknown(path: &FilePath) -> ShowTableRefusal {
        ShowTableRefusal::UnknownFormat(path.file_name().to_owned())
    }

    /// Returns the format of a file of that name; `None` for all other files.
    #[must_use]
    pub fn of(path: &FilePath) -> Option<Self> {
        let extension = path.extension()?;
        let found = Self::ALL.iter().find(|(name, _)| *name == extension);
        found.map(|(_, format)| *format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_tells_the_format_in_any_case() {
        let of = |path: &str| TableFormat::of(&FilePath::parse(path).unwrap());
        assert_eq!(of("runs/plate.CSV"), Some(TableFormat::Csv));
        assert_eq!(of("plate.tsv"), Some(TableFormat::Tsv));
        assert_eq!(of("plate.v2.xlsx"), Some(TableFormat::Xlsx));
        assert_eq!(of("plate.parquet"), Some(TableFormat::Parquet));
        for other in ["plate.txt", "plate", "csv", "plate.xls", "plate.csv.gz"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn the_table_of_a_large_file_is_not_shown() {
        let displayed =
            |path: &str, size| TableFormat::display(&FilePath::parse(path).unwrap(), size);
        let most = MAX_SHOWN_TABLE_BYTES;
        assert_eq!(displayed("a/plate.csv", most), Ok(TableFormat::Csv));
        assert_eq!(
            displayed("plate.csv", most + 1),
            Err(ShowTableRefusal::TooLarge)
        );
        let unknown = displayed("a/plate.txt", 1).unwrap_err();
        assert_eq!(
            unknown,
            ShowTableRefusal::UnknownFormat("plate.txt".to_owned())
        );
    }
}
