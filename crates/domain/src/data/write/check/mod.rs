//! The first step of a data write: reads every cell with its column's type and gathers what must
//! be looked up.

mod checked;
mod labels;
mod series;
mod table;

use super::{
    MAX_ROWS, MAX_SERIES_VALUES, RowAddress, WriteRequest, problem_list::ProblemList,
    reference::ReferenceReader,
};
use crate::{catalog::Catalog, data::write::problem::Reason, refusal::ErrorCode};

pub use checked::Checked;
pub(super) use checked::{
    CheckedColumn, CheckedSeries, CheckedSeriesColumn, CheckedTable, Content,
};
pub(in crate::data) use table::{unknown_column, writable_table};

/// Checks everything that needs no database.
#[must_use]
pub fn check(request: &WriteRequest, catalog: &Catalog) -> Checked {
    check_up_to(MAX_ROWS, request, catalog)
}

/// Checks a request of at most that many rows.
#[must_use]
pub fn check_up_to(max_rows: usize, request: &WriteRequest, catalog: &Catalog) -> Checked {
    let mut problems = ProblemList::new(request.row_names.clone());
    check_size(max_rows, request, &mut problems);
    let mut references = ReferenceReader::new(catalog);
    // All labels first: one that is defined later gets another message than an unknown one.
    for (index, write) in request.tables.iter().enumerate() {
        labels::read(index, write, &mut references.labels, &mut problems);
    }
    let tables = request
        .tables
        .iter()
        .enumerate()
        .map(|(index, write)| table::check(index, write, catalog, &mut references, &mut problems))
        .collect();
    let series = request
        .series
        .iter()
        .enumerate()
        .filter_map(|(index, write)| {
            series::check(index, write, catalog, &mut references, &mut problems)
        })
        .collect();
    let mut labels: Vec<(String, RowAddress)> = references
        .labels
        .into_iter()
        .map(|(name, label)| (name.to_owned(), label.address))
        .collect();
    // In the order of the request, which a hash map does not preserve.
    labels.sort_by_key(|(_, address)| *address);
    Checked {
        version: catalog.version,
        tables,
        series,
        questions: references.questions,
        labels,
        problems,
        dry_run: request.dry_run,
        return_rows: request.return_rows,
        restores: request.restores,
    }
}

fn check_size(max_rows: usize, request: &WriteRequest, problems: &mut ProblemList) {
    let rows: usize = request.tables.iter().map(|write| write.rows.len()).sum();
    if rows > max_rows {
        problems.of_the_request(|| {
            Reason::new(
                ErrorCode::TooManyRows,
                format!("{rows} rows in one request; at most {max_rows} are accepted, so split it"),
            )
        });
    }
    let values: usize = request
        .series
        .iter()
        .flat_map(|series| &series.columns)
        .map(|(_, values)| values.len())
        .sum();
    if values > MAX_SERIES_VALUES {
        problems.of_the_request(|| {
            Reason::new(ErrorCode::TooManyValues, format!(
                "{values} series values in one request; at most {MAX_SERIES_VALUES} are accepted, so split it"
            ))
        });
    }
}
