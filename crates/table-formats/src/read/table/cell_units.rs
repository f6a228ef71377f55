//! Units that the cells of a column have themselves, whatever its header says.

use labdata_domain::scalar::DataType;

use crate::read::{header::Header, open::TypedColumn, survey::ColumnCounts};

/// What is known about the unit of a column's cells.
pub(super) struct CellUnits {
    /// True if cells are times, which are seconds in a column of numbers.
    pub(super) holds_times: bool,
    of_type: Option<String>,
}

impl CellUnits {
    /// The units of the cells that were counted, or of a column that the file types.
    pub(super) fn new(counts: &ColumnCounts, typed: Option<&TypedColumn>) -> Self {
        Self {
            holds_times: counts.times() > 0 || typed.is_some_and(|column| column.is_duration),
            of_type: typed.and_then(|column| column.unit).map(str::to_owned),
        }
    }

    /// The unit of the column's values.
    pub(super) fn unit(
        &self,
        header: &Header,
        data_type: DataType,
        is_import: bool,
    ) -> Option<String> {
        let is_number = matches!(data_type, DataType::Integer | DataType::Float);
        // Ten minutes below `t (min)` are 600, so the header does not name the unit of the values. An import may
        // read a column of texts as numbers.
        if self.holds_times && (is_number || is_import) {
            return Some("s".to_owned());
        }
        header.unit.clone().or_else(|| self.of_type.clone())
    }
}
