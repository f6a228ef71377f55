//! Formats of files that hold a table.

use super::FilePath;

/// Format of a file that holds a table, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableFormat {
    /// Fields separated by commas, semicolons, tabs or bars.
    Csv,
    /// Fields separated by tabs.
    Tsv,
}

impl TableFormat {
    /// All formats with their extensions.
    pub const ALL: [(&'static str, Self); 2] = [("csv", Self::Csv), ("tsv", Self::Tsv)];

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
        assert_eq!(of("plate.v2.csv"), Some(TableFormat::Csv));
        for other in ["plate.txt", "plate", "csv", "plate.xls", "plate.csv.gz"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
