//! Formats of files that hold a table.

use super::FilePath;

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
}
