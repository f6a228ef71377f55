//! Labels of rows.

use std::collections::{HashMap, hash_map::Entry};

use crate::{
    data::write::{
        LABEL_KEY, RowAddress, TableWrite, cell::Cell, problem::Reason, problem_list::ProblemList,
        reference::Label,
    },
    refusal::ErrorCode,
};

/// Reads the labels of a table write's rows.
pub(super) fn read<'r>(
    index: usize,
    write: &'r TableWrite,
    labels: &mut HashMap<&'r str, Label<'r>>,
    problems: &mut ProblemList,
) {
    let Some(column) = write.rows.columns().find(|column| column.name == LABEL_KEY) else {
        return;
    };
    for (row, cell) in column.cells().enumerate() {
        let address = RowAddress { table: index, row };
        match cell {
            Cell::Absent | Cell::Null => {}
            Cell::Text(name) if !name.is_empty() && !name.contains('\0') => {
                match labels.entry(name) {
                    Entry::Occupied(label) => {
                        problems.at_cell(address, None, LABEL_KEY, || {
                            Reason::new(
                                ErrorCode::LabelDuplicate,
                                format!("label \"{}\" is given twice", label.key()),
                            )
                        });
                    }
                    Entry::Vacant(label) => {
                        label.insert(Label {
                            address,
                            table: &write.table,
                            mode: write.mode,
                        });
                    }
                }
            }
            other => problems.at_cell(address, None, LABEL_KEY, || {
                Reason::new(
                    ErrorCode::WrongType,
                    match other {
                        Cell::Text(_) => {
                            "a label must not be empty, nor hold NUL characters".to_owned()
                        }
                        _ => format!("a label must be a string, not {}", other.kind()),
                    },
                )
            }),
        }
    }
}
