//! Reading rows: a target, filters, a page.

mod field;
mod filter;
mod many_series;
mod mode;
mod order;
mod position;
mod problem;
mod row;
mod series;
mod table_column;
mod target;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use time::OffsetDateTime;

pub use field::Field;
pub use filter::{Condition, Hop, Test};
pub use many_series::{
    ExportPlan, ExportTimedOut, ManySeriesPlan, ManySeriesTooLarge, SeriesParents, SeriesSelection,
    TablePart,
};
pub use mode::{ReadMode, SingleReadError};
pub use order::{MAX_ORDER_TERMS, ORDERED_CHARACTERS, OrderTerm, OrderedValue, ReadColumn};
pub use position::{Position, RowPosition};
pub use row::RowJson;
pub use series::{
    SERIES_LIMITS, SeriesColumns, SeriesLimits, SeriesPlan, SeriesRefusal, SeriesTooLarge,
};
pub use table_column::TableColumn;
pub use target::ReadTarget;

use crate::{catalog::Catalog, people::visible_tables::VisibleTables};

/// Size of a page's rows, in bytes of JSON, at which it ends although more rows would be allowed.
pub const MAX_PAGE_BYTES: usize = 8 << 20;

/// Requested rows of a target, not yet validated.
#[derive(Clone, Debug, Default)]
pub struct RowSelection {
    /// Conditions by column.
    pub filters: Map<String, Value>,
    /// Columns of the rows; all unless given.
    pub columns: Option<Vec<String>>,
    /// Order of the rows: names of columns, after `-` where the greatest value comes first.
    pub order_by: Vec<String>,
    /// The page starts after this row.
    pub after: Option<Position>,
    /// At most this many rows.
    pub limit: u32,
    /// The rows as they stood then; as they are unless given.
    pub as_of: Option<OffsetDateTime>,
}

/// Validated read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadPlan {
    /// Target of a read.
    pub target: ReadTarget,
    /// Conditions that rows must meet, all of them.
    pub conditions: Vec<Condition>,
    /// Columns of the rows that are read, in this order.
    pub columns: Vec<ReadColumn>,
    /// Order of the rows. Rows that are equal in it come by descending primary key, points in the
    /// order in which they were written.
    pub order: Vec<OrderTerm>,
    /// The page starts after this row.
    pub after: Option<Position>,
    /// At most this many rows.
    pub limit: u32,
    /// The page ends with the row that brings it to this size in bytes; [`MAX_PAGE_BYTES`] unless a
    /// test sets another.
    pub max_bytes: usize,
    /// The rows as they stood then; as they are unless given.
    pub as_of: Option<OffsetDateTime>,
    /// Tables that the caller may see, of which datasets must be made to be read; none unless set.
    pub visible_tables: VisibleTables,
}

/// Page of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowPage {
    /// The rows.
    pub rows: Vec<RowJson>,
    /// Start of the next page, if more rows follow.
    pub next: Option<Position>,
}

impl ReadPlan {
    /// Returns true if a page of that many rows and bytes is full. It has at least one row.
    #[must_use]
    pub fn is_full(&self, rows: usize, bytes: usize) -> bool {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        // One row at least, however large: a page without rows would look like the end.
        rows >= limit || (rows > 0 && bytes >= self.max_bytes)
    }

    /// Validates filters such as `sample__name` or `value__gte`, columns, and the order.
    ///
    /// # Errors
    /// A sentence for every invalid filter and column, and for a cursor of another list.
    pub fn new(
        target: ReadTarget,
        catalog: &Catalog,
        selection: RowSelection,
    ) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut conditions = Vec::new();
        for (key, value) in &selection.filters {
            match Condition::parse(&target, catalog, key, value) {
                Ok(condition) => conditions.push(condition),
                Err(problem) => problems.push(problem),
            }
        }
        conditions.extend(Condition::on_visible_tables(&target, catalog));
        let (columns, wrong_columns) = order::columns(&target, selection.columns.as_deref());
        let (order, wrong_terms) = order::order(&target, &selection.order_by);
        problems.extend(wrong_columns);
        problems.extend(wrong_terms);
        let after = selection.after;
        if problems.is_empty()
            && after
                .as_ref()
                // With a cursor of another order, the page would skip rows silently.
                .is_some_and(|position| !position.fits(&target, &order))
        {
            problems.push("the cursor belongs to another list".to_owned());
        }
        if problems.is_empty() {
            Ok(Self {
                target,
                conditions,
                columns,
                order,
                after,
                limit: selection.limit,
                max_bytes: MAX_PAGE_BYTES,
                as_of: selection.as_of,
                visible_tables: VisibleTables::default(),
            })
        } else {
            Err(problems)
        }
    }
}
