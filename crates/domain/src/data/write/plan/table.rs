//! Planning one table write.

use std::collections::{HashMap, hash_map::Entry};

use uuid::Uuid;

use super::steps::{Action, LateKey, RowKey, StepColumn, TableStep};
use crate::{
    catalog::{ColumnRef, KeyedTable},
    data::write::{
        Mode,
        address::RowAddress,
        check::{CheckedColumn, CheckedTable, Content},
        problem::Reason,
        problem_list::ProblemList,
        reference::{Answered, Reference},
    },
    refusal::ErrorCode,
    scalar::{ComparableValue, KeyValue, Values},
};

/// Plans a table write. `steps` are those of the table writes before it.
pub(super) fn plan(
    checked: CheckedTable,
    answered: Answered<'_>,
    steps: &[Option<TableStep>],
    new_id: &mut dyn FnMut() -> Uuid,
    problems: &mut ProblemList,
) -> TableStep {
    let CheckedTable {
        index,
        table,
        mode,
        on_match,
        cascade,
        key,
        len,
        columns,
        if_updated_at,
    } = checked;
    // Before references are resolved, because they may point at rows of this write.
    let (keys, is_key_given) = created_keys(&table, mode, &columns, len, new_id);
    let mut planner = TablePlanner {
        index,
        key: &key,
        // A row of an upsert may turn out to exist with another key, so its key is late.
        inserted_keys: Some(&keys).filter(|_| mode == Mode::Insert),
        answered,
        steps,
        problems,
    };
    let mut columns: Vec<StepColumn> = columns
        .into_iter()
        .map(|column| planner.plan_column(column))
        .collect();
    if mode == Mode::Insert {
        // The keys, generated ones included, are the action's.
        columns.retain(|column| column.column != *table.key());
    }
    let key = take_key(&key, len, &mut columns);
    planner.refuse_duplicate_keys(&key, len);
    let action = match mode {
        Mode::Insert => Action::Insert { keys, is_key_given },
        Mode::Upsert => Action::Upsert {
            new_keys: keys,
            on_match,
        },
        Mode::Update => Action::Update { on_match },
        Mode::Delete => Action::Delete { cascade },
    };
    TableStep {
        index,
        table,
        action,
        len,
        key,
        columns,
        if_updated_at,
        row_names: problems.names().clone(),
    }
}

/// Takes the key columns out of the rest. One that no row gives matches nothing, as null does:
/// a condition that is missing would match more rows than the request means.
fn take_key(key: &[ColumnRef], len: usize, columns: &mut Vec<StepColumn>) -> Vec<StepColumn> {
    key.iter()
        .map(|column| {
            let given = columns.iter().position(|given| given.column == *column);
            given.map_or_else(
                // Missing key columns were reported; a column of nulls stands in, so that the other rows are still
                // checked.
                || StepColumn {
                    column: column.clone(),
                    values: Values::nulls_of(column.data_type, len).into(),
                    provided: None,
                    late: Vec::new(),
                },
                // Moved, not copied: a key is compared, and never among the values that are set.
                |at| columns.remove(at),
            )
        })
        .collect()
}

/// The primary keys of rows that are or may be created, none in other modes, and whether the request has given any of them.
fn created_keys(
    table: &KeyedTable,
    mode: Mode,
    columns: &[CheckedColumn],
    len: usize,
    new_id: &mut dyn FnMut() -> Uuid,
) -> (Values, bool) {
    let key = table.key();
    // Updates and deletes create nothing, so no id is drawn for them.
    if !matches!(mode, Mode::Insert | Mode::Upsert) {
        return (Values::with_capacity(key.data_type, 0), false);
    }
    let given = columns.iter().find_map(|column| match &column.content {
        Content::Values(values) if column.column == *key => Some(values),
        _ => None,
    });
    let mut keys = Values::with_capacity(key.data_type, len);
    for row in 0..len {
        // An upsert gets a key for every row: which rows are new is known only once they are
        // matched.
        let given = given.and_then(|given| given.get(row));
        keys.push_or_null(
            given.or_else(|| KeyValue::generate(key.data_type, new_id).map(Into::into)),
        );
    }
    (keys, given.is_some())
}

/// A part of a row's key: the value, or the row whose key the value will be.
#[derive(PartialEq, Eq, Hash)]
enum KeyPart<'v> {
    Value(ComparableValue<'v>),
    Late(RowAddress),
}

impl<'v> KeyPart<'v> {
    /// The part that a column gives for a row; `None` for null.
    fn of(column: &'v StepColumn, row: usize) -> Option<Self> {
        // `late` is filled in the order of the rows.
        let late = column.late.binary_search_by_key(&row, |late| late.index);
        match late.ok().and_then(|at| column.late.get(at)) {
            // The key is unknown yet, but rows that wait for the same one have equal parts.
            Some(late) => Some(Self::Late(late.address)),
            None => column.values.comparable(row).map(Self::Value),
        }
    }
}

struct TablePlanner<'a> {
    index: usize,
    /// Columns by which rows are matched.
    key: &'a [ColumnRef],
    /// The keys of the rows that an insert creates.
    inserted_keys: Option<&'a Values>,
    answered: Answered<'a>,
    steps: &'a [Option<TableStep>],
    problems: &'a mut ProblemList,
}

impl TablePlanner<'_> {
    fn plan_column(&mut self, checked: CheckedColumn) -> StepColumn {
        let CheckedColumn {
            column,
            input,
            content,
            provided,
        } = checked;
        let mut planned = StepColumn {
            column,
            values: Values::Text(Vec::new()).into(),
            provided,
            late: Vec::new(),
        };
        match content {
            Content::Values(values) => planned.values = values,
            Content::References(references) => self.resolve(&mut planned, input, &references),
        }
        planned
    }

    fn resolve(
        &mut self,
        planned: &mut StepColumn,
        input: Option<usize>,
        references: &[Reference],
    ) {
        let column = planned.column.clone();
        let is_key = self.key.contains(&column);
        let mut values = Values::with_capacity(column.data_type, references.len());
        for (row, reference) in references.iter().enumerate() {
            let known_key = |address| self.known_key(address);
            match self.answered.resolve(reference, known_key) {
                Ok(None) => values.push_null(),
                Ok(Some(RowKey::Known(key))) => values.push(key.into()),
                // The key of a row of an upsert is known only once the stored rows are matched.
                Ok(Some(RowKey::Late(address))) => {
                    values.push_null();
                    if is_key && address.table == self.index {
                        self.at_cell(row, input, &column.name, || {
                            Reason::new(ErrorCode::InvalidKey, "a key column cannot refer to a row of the same table write, whose rows are matched together; put that row into an earlier one")
                        });
                    } else {
                        planned.late.push(LateKey {
                            index: row,
                            address,
                        });
                    }
                }
                Err(message) => {
                    values.push_null();
                    self.at_cell(row, input, &column.name, || message);
                }
            }
        }
        planned.values = values.into();
    }

    fn known_key(&self, address: RowAddress) -> Option<KeyValue> {
        if address.table == self.index {
            // Only of an insert: its keys are drawn before the references of the step's rows are resolved.
            self.inserted_keys?.key(address.row)
        } else {
            let step = self.steps.get(address.table)?.as_ref()?;
            step.inserted_keys()?.key(address.row)
        }
    }

    fn at_cell(
        &mut self,
        row: usize,
        input: Option<usize>,
        column: &str,
        reason: impl FnOnce() -> Reason,
    ) {
        let address = RowAddress {
            table: self.index,
            row,
        };
        self.problems.at_cell(address, input, column, reason);
    }

    /// Reports rows that give the same key as an earlier one.
    fn refuse_duplicate_keys(&mut self, key: &[StepColumn], len: usize) {
        // An insert matches nothing; repeated primary keys were reported when they were read.
        if key.is_empty() {
            return;
        }
        // Two rows of one key would change one stored row twice, in an order that a set-based statement does not
        // have.
        let mut first_rows: HashMap<Vec<KeyPart<'_>>, usize> = HashMap::with_capacity(len);
        for row in 0..len {
            let parts = key.iter().map(|column| KeyPart::of(column, row));
            // Null matches no row, and was reported.
            let Some(parts) = parts.collect::<Option<Vec<_>>>() else {
                continue;
            };
            match first_rows.entry(parts) {
                Entry::Vacant(entry) => {
                    entry.insert(row);
                }
                Entry::Occupied(first) => {
                    let address = RowAddress {
                        table: self.index,
                        row,
                    };
                    let names = self.key_names();
                    let first = RowAddress {
                        row: *first.get(),
                        ..address
                    };
                    let first = self.problems.names().row(first);
                    self.problems.at_row(address, || {
                        Reason::new(
                            ErrorCode::DuplicateKey,
                            format!("has the same key ({names}) as {first} of this table write"),
                        )
                    });
                }
            }
        }
    }

    fn key_names(&self) -> String {
        let names: Vec<&str> = self.key.iter().map(|column| column.name.as_str()).collect();
        names.join(", ")
    }
}
