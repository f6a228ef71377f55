//! Units that the cells of a column have themselves, regardless of its header.

use labdata_domain::{catalog::ucum_of, scalar::DataType};

use crate::read::{
    cell_unit::is_percent, header::Header, interpret::PercentContext, open::TypedColumn,
    survey::ColumnCounts,
};

/// Facts about the unit of a column's cells.
pub(super) struct CellUnits {
    /// True if cells are times, which are seconds in a column of numbers.
    pub(super) holds_times: bool,
    pub(super) percents: PercentContext,
    has_percents: bool,
    /// The unit that a workbook shows in each cell.
    of_cells: Option<String>,
}

impl CellUnits {
    /// The units of the cells that were counted, or of a column that the file types.
    pub(super) fn new(header: &Header, counts: &ColumnCounts, typed: Option<&TypedColumn>) -> Self {
        Self {
            holds_times: counts.times() > 0 || typed.is_some_and(|column| column.is_duration),
            percents: PercentContext {
                is_mixed: counts.mixes_percents(),
                is_named: header.text.contains('%')
                    || header.unit.as_deref().is_some_and(is_percent),
            },
            has_percents: counts.percents > 0,
            of_cells: counts
                .common_label()
                .filter(|label| ucum_of(label).is_some())
                .map(str::to_owned),
        }
    }

    /// The unit of the column's values.
    pub(super) fn unit(
        &self,
        header: &Header,
        data_type: DataType,
        is_import: bool,
    ) -> Option<String> {
        // An import may read a column of texts as numbers.
        let may_be_number = is_import || data_type.is_number();
        // Ten minutes below `t (min)` are 600, so the header does not name the unit of the values.
        if self.holds_times && may_be_number {
            return Some("s".to_owned());
        }
        // `Viability %` has no brackets, but its percentages are what the header says.
        let is_percent = self.has_percents && header.text.contains('%') && may_be_number;
        let percent = is_percent.then_some("%");
        let own = header.unit.clone().or_else(|| percent.map(str::to_owned));
        own.or_else(|| self.of_cells.clone().filter(|_| may_be_number))
    }
}
