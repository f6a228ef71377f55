//! `/api/v1/tables`: definitions of the organization's tables.

use labdata_domain::catalog::Name;
use labdata_request_body::{Reader as _, fields::required, readers::text, shape};

use crate::Operation;

pub mod access;
pub mod define;
pub mod drop;
pub mod drop_column;
pub mod export;
pub mod row_history;
pub mod schema;
pub mod table_view;

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        access::operation(),
        define::operation(),
        drop::operation(),
        drop_column::operation(),
        export::operation(),
        row_history::history(),
        row_history::restore(),
        row_history::forget(),
        schema::operation(),
    ]
}

shape! {
    /// The path of a table.
    #[derive(Clone, Debug)]
    pub struct TablePath {
        /// The table's name
        pub name: String = required(text(..).with("pattern", Name::PATTERN).example("sample")),
    }
}
