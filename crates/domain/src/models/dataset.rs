//! Datasets: immutable snapshots of rows.

use std::{
    collections::{BTreeSet, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::Value;
use time::OffsetDateTime;

use crate::{
    catalog::TableIdentity,
    files::{FilePath, ObjectKey},
    ids::{DatasetId, FileId, UserId},
    numbers::grouped,
    refusal::{ErrorCode, Refuse},
    scalar::{ComparableValue, DataType},
};

/// Maximum number of characters of a dataset's name.
pub const MAX_DATASET_NAME_LENGTH: usize = 200;

/// Maximum number of characters of a dataset's description.
pub const MAX_DATASET_DESCRIPTION_LENGTH: usize = 2_000;

/// Number of distinct values of a column that are counted. More are recorded as unknown.
pub const MAX_COUNTED_VALUES: usize = 1_000;

/// Maximum number of columns of a dataset.
pub const MAX_DATASET_COLUMNS: usize = 1_600;

/// Maximum number of characters of the name of a dataset's column.
pub const MAX_DATASET_COLUMN_NAME_LENGTH: usize = 200;

/// Maximum number of rows of a dataset.
pub const MAX_DATASET_ROWS: usize = 10_000_000;

/// Maximum size of a dataset's object in bytes.
pub const MAX_DATASET_BYTES: u64 = 4 << 30;

/// Number of rows of a preview.
pub const PREVIEWED_ROWS: usize = 50;

/// Maximum number of characters of a text in a preview.
const MAX_PREVIEWED_CHARACTERS: usize = 1_000;

/// Shows a cell in a preview: JSON, which is stored as text, as JSON, and a long text cut.
#[must_use]
pub fn preview_cell(cell: Value, data_type: DataType) -> Value {
    let Value::String(text) = cell else {
        return cell;
    };
    match text.char_indices().nth(MAX_PREVIEWED_CHARACTERS) {
        Some((end, _)) => {
            let beginning = text.get(..end).unwrap_or_default();
            Value::String(format!("{beginning}…"))
        }
        // Only whole texts: JSON that was cut cannot be parsed.
        None if data_type == DataType::Json => {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        None => Value::String(text),
    }
}

/// Column of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Its values, counted when the snapshot was made.
    pub profile: ColumnProfile,
}

/// Counts of a column's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnProfile {
    /// Number of nulls.
    pub nulls: u64,
    /// Number of distinct values that are not null; `None` above [`MAX_COUNTED_VALUES`], and of JSON.
    pub distinct: Option<u64>,
}

/// Counts the values of a column as they arrive, in constant memory.
#[derive(Debug)]
pub struct ColumnProfiler {
    nulls: u64,
    /// Hashes of the distinct values; `None` once they are not counted.
    distinct: Option<HashSet<u64>>,
}

impl ColumnProfiler {
    /// Begins the profile of a column of that type.
    #[must_use]
    pub fn new(data_type: DataType) -> Self {
        Self {
            nulls: 0,
            // Equal JSON has several spellings, so values are not counted.
            distinct: (data_type != DataType::Json).then(HashSet::new),
        }
    }

    /// Counts the next value.
    pub fn add(&mut self, value: ComparableValue<'_>) {
        if let Some(distinct) = &mut self.distinct {
            // Hashes have 8 bytes however long a text is; among 1,000 values a collision is improbable.
            let mut hasher = DefaultHasher::new();
            value.hash(&mut hasher);
            distinct.insert(hasher.finish());
            // Frees the memory: beyond the limit the number stays unknown anyway.
            if distinct.len() > MAX_COUNTED_VALUES {
                self.distinct = None;
            }
        }
    }

    /// Returns true while distinct values are counted. Otherwise only nulls are.
    #[must_use]
    pub const fn counts_values(&self) -> bool {
        self.distinct.is_some()
    }

    /// Counts nulls.
    pub const fn add_nulls(&mut self, nulls: u64) {
        self.nulls = self.nulls.saturating_add(nulls);
    }

    /// Returns the profile.
    #[must_use]
    pub fn finish(self) -> ColumnProfile {
        let count = |values: HashSet<u64>| u64::try_from(values.len()).unwrap_or(u64::MAX);
        ColumnProfile {
            nulls: self.nulls,
            distinct: self.distinct.map(count),
        }
    }
}

/// Error: a dataset was asked for with both a query and a file, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a dataset is made of a query, a file_id, or a label with annotated: give exactly one")]
pub struct NotOneSource;

/// Why a dataset cannot be made. The text is for the person who asked for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatasetRefusal {
    /// There are no columns.
    #[error("the data has no columns")]
    NoColumns,
    /// There are more than [`MAX_DATASET_COLUMNS`].
    #[error(
        "the data has {} columns; {} is the most",
        grouped(*.0),
        grouped(MAX_DATASET_COLUMNS)
    )]
    TooManyColumns(usize),
    /// A column has no name. The number starts at 1.
    #[error("column {0} has no name; give it one")]
    UnnamedColumn(usize),
    /// Two columns have one name.
    #[error("two columns are named \"{0}\"; rename one of them")]
    DuplicateColumn(String),
    /// A name cannot be stored. The number starts at 1.
    #[error(
        "the name of column {0} has control characters or more than \
         {MAX_DATASET_COLUMN_NAME_LENGTH} characters; rename it"
    )]
    UnusableName(usize),
    /// There are more than [`MAX_DATASET_ROWS`].
    #[error("a dataset has at most {} rows", grouped(MAX_DATASET_ROWS))]
    TooManyRows,
    /// The rows take more than [`MAX_DATASET_BYTES`] as Parquet.
    #[error("a dataset takes at most {} GiB as Parquet", MAX_DATASET_BYTES >> 30)]
    TooLarge,
}

impl Refuse for DatasetRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NoColumns
            | Self::TooManyColumns(_)
            | Self::UnnamedColumn(_)
            | Self::DuplicateColumn(_)
            | Self::UnusableName(_)
            | Self::TooManyRows
            | Self::TooLarge => ErrorCode::InvalidDataset,
        }
    }
}

/// Checks the names of a dataset's columns.
///
/// # Errors
/// The first rule that they break.
pub fn check_column_names<'n>(
    names: impl ExactSizeIterator<Item = &'n str>,
) -> Result<(), DatasetRefusal> {
    match names.len() {
        0 => return Err(DatasetRefusal::NoColumns),
        count if count > MAX_DATASET_COLUMNS => return Err(DatasetRefusal::TooManyColumns(count)),
        _ => {}
    }
    let mut seen = HashSet::new();
    for (name, number) in names.zip(1..) {
        if name.trim().is_empty() {
            return Err(DatasetRefusal::UnnamedColumn(number));
        }
        // Stops at the limit, where a count would read a name of megabytes to its end.
        let is_long = name.chars().nth(MAX_DATASET_COLUMN_NAME_LENGTH).is_some();
        if is_long || name.chars().any(char::is_control) {
            return Err(DatasetRefusal::UnusableName(number));
        }
        if !seen.insert(name) {
            return Err(DatasetRefusal::DuplicateColumn(name.to_owned()));
        }
    }
    Ok(())
}

/// Origin of a dataset's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatasetSource {
    /// The result of this query.
    Query(String),
    /// A file of the platform, which may have been deleted since.
    File(FileId),
    /// Images with masks of this label that a person has vetted.
    Annotations(String),
}

/// Mask of a dataset of annotations: an object of the storage, whose key stands in the column of masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetMask {
    /// The object.
    pub object: ObjectKey,
    /// Its bytes.
    pub size: u64,
}

/// Column of a dataset of annotations with the ids of its images.
pub const IMAGE_COLUMN: &str = "image";

/// Column of a dataset of annotations with the ids of its masks.
pub const MASK_COLUMN: &str = "mask";

/// Snapshot of rows, stored as one Parquet object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// Its id.
    pub id: DatasetId,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Its columns, in order.
    pub columns: Vec<DatasetColumn>,
    /// Number of rows.
    pub row_count: u64,
    /// Origin of the rows.
    pub source: DatasetSource,
    /// Tables that the query names; none for other origins. Who may not see all of them does not see the dataset.
    pub tables: BTreeSet<TableIdentity>,
    /// Object that holds the rows.
    pub object: ObjectKey,
    /// Size of the object in bytes.
    pub size: u64,
    /// The user who made it.
    pub created_by: UserId,
    /// When the snapshot was made.
    pub created_at: OffsetDateTime,
}

impl Dataset {
    /// Returns the column of that name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&DatasetColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Returns the name under which its object is saved.
    #[must_use]
    pub fn file_name(&self) -> FilePath {
        FilePath::named(&self.name, ".parquet")
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use uuid::Uuid;

    use super::*;

    fn profile<'v>(
        data_type: DataType,
        values: impl IntoIterator<Item = ComparableValue<'v>>,
    ) -> ColumnProfile {
        let mut profiler = ColumnProfiler::new(data_type);
        profiler.add_nulls(2);
        values.into_iter().for_each(|value| profiler.add(value));
        profiler.finish()
    }

    #[test]
    fn distinct_values_and_nulls_are_counted() {
        let values = [3, 3, 4].map(ComparableValue::Integer);
        let expected = ColumnProfile {
            nulls: 2,
            distinct: Some(2),
        };
        assert_eq!(profile(DataType::Integer, values), expected);
        assert_eq!(profile(DataType::Text, []).distinct, Some(0));
    }

    #[test]
    fn many_values_and_json_are_not_counted() {
        let numbers = |count| (0..).take(count).map(ComparableValue::Integer);
        let most = profile(DataType::Integer, numbers(MAX_COUNTED_VALUES));
        assert_eq!(most.distinct, Some(1_000));
        let more = profile(DataType::Integer, numbers(MAX_COUNTED_VALUES + 1));
        assert_eq!(more.distinct, None);
        let json = profile(DataType::Json, [ComparableValue::Text("{}")]);
        assert_eq!(json.distinct, None);
    }

    #[test]
    fn columns_have_distinct_names_that_can_be_stored() {
        let check = |names: &[&str]| {
            let checked = check_column_names(names.iter().copied());
            checked.map_err(|refusal| refusal.to_string())
        };
        assert_eq!(check(&["od 600 (µ)", "OD", "od"]), Ok(()));
        let refused = |names: &[&str]| check(names).unwrap_err();
        assert_eq!(refused(&[]), "the data has no columns");
        assert_eq!(
            refused(&["od", "well", "od"]),
            "two columns are named \"od\"; rename one of them"
        );
        assert_eq!(refused(&["od", " "]), "column 2 has no name; give it one");
        for name in ["a\0b", "a\nb", &"é".repeat(201)] {
            assert_eq!(
                refused(&[name]),
                "the name of column 1 has control characters or more than 200 characters; rename it"
            );
        }
        assert_eq!(check(&["é".repeat(200).as_str()]), Ok(()));
        let many: Vec<String> = (0..=MAX_DATASET_COLUMNS).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            refused(&many),
            "the data has 1,601 columns; 1,600 is the most"
        );
        assert_eq!(check(&many[1..]), Ok(()));
    }

    #[test]
    fn a_preview_cuts_long_texts_and_shows_json() {
        let displayed = |text: &str, data_type| preview_cell(Value::from(text), data_type);
        let long = "é".repeat(1_001);
        let cut = format!("{}…", "é".repeat(1_000));
        assert_eq!(displayed(&long, DataType::Text), Value::from(cut));
        assert_eq!(displayed("[1]", DataType::Text), Value::from("[1]"));
        assert_eq!(displayed("[1]", DataType::Json), serde_json::json!([1]));
        assert_eq!(
            preview_cell(Value::from(1), DataType::Integer),
            Value::from(1)
        );
    }

    #[test]
    fn a_dataset_is_saved_under_its_name() {
        let named = |name: &str| Dataset {
            id: DatasetId::new(Uuid::nil()),
            name: name.to_owned(),
            description: None,
            columns: Vec::new(),
            row_count: 0,
            source: DatasetSource::Query("select 1".to_owned()),
            tables: BTreeSet::new(),
            object: ObjectKey::new(Uuid::nil()),
            size: 0,
            created_by: UserId::new(Uuid::nil()),
            created_at: datetime!(2026-01-01 00:00 UTC),
        };
        for (name, file) in [
            ("Wein", "Wein.parquet"),
            ("a/b\\c\nd", "a_b_c_d.parquet"),
            ("..", "...parquet"),
        ] {
            assert_eq!(named(name).file_name().as_str(), file);
        }
        let long = named(&"é".repeat(2_000)).file_name();
        assert_eq!(FilePath::parse(long.as_str()), Ok(long));
    }
}
