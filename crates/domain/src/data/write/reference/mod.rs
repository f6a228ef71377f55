//! Foreign key values: ids, `@label` references to earlier rows, lookups.

mod answered;

use std::collections::HashMap;

use serde_json::{Map, Value};

pub(super) use answered::Answered;

use super::{
    CellLookup, FileCell, IdQuestion, LookupQuestion, Mode, Questions, RowAddress,
    cell::Cell,
    problem::{Reason, no_column, quoted},
};
use crate::{
    catalog::{Catalog, ColumnRef, HIDDEN_TABLE, KeyedTable, Table},
    refusal::ErrorCode,
    scalar::{DataType, KeyValue, Scalar, Values},
};

/// A foreign key value, read but not yet answered.
#[derive(Clone, Debug)]
pub(super) enum Reference {
    /// Null, absent, or already reported as a problem.
    None,
    /// The id of a row that the request gives before.
    Known(KeyValue),
    /// An id that must exist.
    Id(Asked),
    /// An earlier row of the request.
    Row(RowAddress),
    /// A lookup.
    Lookup(Asked),
    /// A cell of a file: the value of a unique column, or the key.
    Cell {
        /// The row whose key it may be.
        key: Box<Reference>,
        /// The lookup by the value.
        value: Asked,
    },
}

/// Position of a value among the questions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    question: usize,
    index: usize,
}

/// A labelled row.
#[derive(Clone, Debug)]
pub(super) struct Label<'r> {
    pub(super) address: RowAddress,
    pub(super) table: &'r str,
    pub(super) mode: Mode,
}

/// Columns that a lookup uses. Lookups of one shape share a question.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LookupShape {
    table: String,
    columns: Vec<ColumnRef>,
    null_columns: Vec<ColumnRef>,
}

/// The ids asked of one table.
#[derive(Debug)]
struct AskedIds {
    question: usize,
    indices: HashMap<KeyValue, usize>,
}

/// Reads references and gathers their questions, each once.
pub(super) struct ReferenceReader<'a> {
    catalog: &'a Catalog,
    pub(super) labels: HashMap<&'a str, Label<'a>>,
    given_keys: HashMap<String, HashMap<KeyValue, RowAddress>>,
    pub(super) questions: Questions,
    asked_ids: HashMap<String, AskedIds>,
    lookup_questions: HashMap<LookupShape, usize>,
    /// Lookups of cells of a file, by table, column and value: each is asked once.
    asked_values: HashMap<(String, String, KeyValue), Asked>,
}

impl<'a> ReferenceReader<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            labels: HashMap::new(),
            given_keys: HashMap::new(),
            questions: Questions::default(),
            asked_ids: HashMap::new(),
            lookup_questions: HashMap::new(),
            asked_values: HashMap::new(),
        }
    }

    /// Notes that a row with this key exists from `at` on; returns the address of an earlier row
    /// with the key.
    pub(super) fn give_key(
        &mut self,
        table: &str,
        key: KeyValue,
        at: RowAddress,
    ) -> Option<RowAddress> {
        // `entry` would copy the table's name for every row.
        if !self.given_keys.contains_key(table) {
            self.given_keys.insert(table.to_owned(), HashMap::new());
        }
        let keys = self.given_keys.get_mut(table)?;
        // The first address stays: rows after it may reference the key.
        if let Some(first) = keys.get(&key) {
            return Some(*first);
        }
        keys.insert(key, at);
        None
    }

    /// Reads a reference to `target` in the row `at`; `None` for a series, which follows all table
    /// writes.
    pub(super) fn read(
        &mut self,
        cell: &Cell,
        target: &str,
        at: Option<RowAddress>,
    ) -> Result<Reference, Reason> {
        match cell {
            Cell::Absent | Cell::Null => Ok(Reference::None),
            // Before labels: their refusals name the table.
            _ if target == HIDDEN_TABLE => Err(hidden_target()),
            // Before ids: an id of a text key that begins with `@` is not reachable as a cell, only by a lookup.
            Cell::Text(text) if text.starts_with('@') => self.read_label(text, target, at),
            Cell::Object(map) => self.read_lookup(map, target),
            cell => self.read_id(cell, target, at),
        }
    }

    fn read_label(
        &self,
        text: &str,
        target: &str,
        at: Option<RowAddress>,
    ) -> Result<Reference, Reason> {
        let name = text.get(1..).unwrap_or_default();
        let displayed = quoted(text);
        let Some(label) = self.labels.get(name) else {
            return Err(Reason::new(
                ErrorCode::LabelUnknown,
                format!("label \"{displayed}\" is not defined in this request"),
            ));
        };
        // Rows are written in order, so the keys of later ones are not known yet.
        if at.is_some_and(|at| label.address >= at) {
            return Err(Reason::new(
                ErrorCode::LabelUnknown,
                format!(
                    "label \"{displayed}\" is defined later; a row may reference only rows before it"
                ),
            ));
        }
        if label.table != target {
            return Err(Reason::new(
                ErrorCode::LabelUnknown,
                format!(
                    "label \"{displayed}\" is a row of \"{}\", but a row of \"{target}\" is needed",
                    label.table
                ),
            ));
        }
        // Its row does not exist any more when the steps after it are applied.
        if label.mode == Mode::Delete {
            return Err(Reason::new(
                ErrorCode::LabelUnknown,
                format!("label \"{displayed}\" is a row that this request deletes"),
            ));
        }
        Ok(Reference::Row(label.address))
    }

    fn read_id(
        &mut self,
        cell: &Cell,
        target: &str,
        at: Option<RowAddress>,
    ) -> Result<Reference, Reason> {
        let table = self.table(target)?;
        let key_type = table.key().data_type;
        // Ids are strings in responses (`ids`, `refs`, `parent_id`), for every type of key.
        let read = match cell {
            Cell::Text(text) => Ok(KeyValue::parse(text, key_type).map(Into::into)),
            cell => cell.to_scalar(key_type),
        };
        let scalar = match (cell, read) {
            (_, Ok(Some(scalar))) => scalar,
            (Cell::File(_), Err(message)) => {
                return Err(Reason::new(
                    ErrorCode::WrongType,
                    format!("must be the id of a row of \"{target}\": {message}"),
                ));
            }
            _ => {
                return Err(Reason::new(
                    ErrorCode::WrongType,
                    format!(
                        "must be the id of a row of \"{target}\" ({key_type}), an \"@label\" of an earlier row, or a lookup object, not {}",
                        cell.kind()
                    ),
                ));
            }
        };
        let Some(key) = scalar.into_key() else {
            return Err(Reason::new(
                ErrorCode::ReferenceNotFound,
                format!("\"{target}\" has no primary key to reference"),
            ));
        };
        let given = self.given_keys.get(target).and_then(|keys| keys.get(&key));
        // A row before this one exists by then, so the database need not be asked.
        if given.is_some_and(|given| at.is_none_or(|at| *given < at)) {
            return Ok(Reference::Known(key));
        }
        self.ask_id(&table, key)
            .map(Reference::Id)
            .ok_or_else(|| Reason::new(ErrorCode::ReferenceNotFound, "this id cannot be looked up"))
    }

    /// Reads a cell of a file that refers to a row of `target` by the value of a unique column, or
    /// by its key.
    pub(super) fn read_file_cell(
        &mut self,
        cell: &FileCell,
        lookup: &CellLookup,
        target: &str,
        at: RowAddress,
    ) -> Result<Reference, Reason> {
        let table = self.table(target)?;
        let column = table
            .column(&lookup.column)
            .ok_or_else(|| no_column(target, &lookup.column))?;
        let value = cell.to_scalar(column.data_type).map_err(|message| {
            Reason::new(
                ErrorCode::WrongType,
                format!(
                    "must be the {} of a row of \"{target}\": {message}",
                    column.name
                ),
            )
        })?;
        let key = cell
            .to_key(table.key().data_type)
            .filter(|_| lookup.takes_key);
        let key = match key {
            None => Reference::None,
            // Both readings are asked for: which one is meant shows only when the stored rows are known.
            Some(key) if self.is_given_before(target, &key, at) => Reference::Known(key),
            Some(key) => self
                .ask_id(&table, key)
                .map_or(Reference::None, Reference::Id),
        };
        let value = self.ask_value(&table, column, value);
        value
            .map(|value| Reference::Cell {
                key: Box::new(key),
                value,
            })
            .ok_or_else(|| Reason::new(ErrorCode::LookupNoMatch, "this row cannot be looked up"))
    }

    fn is_given_before(&self, target: &str, key: &KeyValue, at: RowAddress) -> bool {
        let given = self.given_keys.get(target).and_then(|keys| keys.get(key));
        given.is_some_and(|given| *given < at)
    }

    /// Asks for the row with a value of a unique column.
    fn ask_value(
        &mut self,
        table: &KeyedTable,
        column: &ColumnRef,
        value: Scalar,
    ) -> Option<Asked> {
        // Values that cannot be keys, such as floats, are not remembered: they have no equality that a map could use.
        let asked = value.clone().into_key().map(|value| {
            let (table, column) = (table.name.clone(), column.name.clone());
            (table, column, value)
        });
        if let Some(known) = asked.as_ref().and_then(|key| self.asked_values.get(key)) {
            return Some(*known);
        }
        let wanted = WantedValues {
            columns: vec![(column.clone(), value)],
            null_columns: Vec::new(),
        };
        let found = self.ask_lookup(table, wanted)?;
        if let Some(key) = asked {
            self.asked_values.insert(key, found);
        }
        Some(found)
    }

    fn ask_id(&mut self, table: &KeyedTable, key: KeyValue) -> Option<Asked> {
        // As for given keys, `entry` would copy the table's name for every reference.
        if !self.asked_ids.contains_key(&table.name) {
            let asked = AskedIds {
                question: self.questions.ids.len(),
                indices: HashMap::new(),
            };
            self.asked_ids.insert(table.name.clone(), asked);
            self.questions.ids.push(IdQuestion {
                table: table.clone(),
                keys: Vec::new(),
            });
        }
        let asked = self.asked_ids.get_mut(&table.name)?;
        let question = asked.question;
        // Many rows reference the same one; each id is looked up once.
        if let Some(index) = asked.indices.get(&key).copied() {
            return Some(Asked { question, index });
        }
        let keys = &mut self.questions.ids.get_mut(question)?.keys;
        let index = keys.len();
        asked.indices.insert(key.clone(), index);
        keys.push(key);
        Some(Asked { question, index })
    }

    /// The table of that name, whose rows can be referenced: that of a column's reference, where the name may
    /// stand for a hidden table.
    pub(super) fn table(&self, name: &str) -> Result<KeyedTable, Reason> {
        self.catalog.keyed_table(name).ok_or_else(|| {
            if name == HIDDEN_TABLE {
                return hidden_target();
            }
            no_table(name)
        })
    }

    fn read_lookup(&mut self, map: &Map<String, Value>, target: &str) -> Result<Reference, Reason> {
        let table = self.table(target)?;
        let wanted = WantedValues::read(map, &table)?;
        self.ask_lookup(&table, wanted)
            .map(Reference::Lookup)
            .ok_or_else(|| Reason::new(ErrorCode::LookupNoMatch, "this row cannot be looked up"))
    }

    fn ask_lookup(&mut self, table: &KeyedTable, wanted: WantedValues) -> Option<Asked> {
        let WantedValues {
            columns,
            null_columns,
        } = wanted;
        let shape = LookupShape {
            table: table.name.clone(),
            columns: columns.iter().map(|(column, _)| column.clone()).collect(),
            null_columns: null_columns.clone(),
        };
        let next = self.questions.lookups.len();
        // Lookups by the same columns become one query.
        let question = *self.lookup_questions.entry(shape).or_insert(next);
        if question == next {
            let columns = columns
                .iter()
                .map(|(column, _)| (column.clone(), Values::with_capacity(column.data_type, 1)))
                .collect();
            self.questions.lookups.push(LookupQuestion {
                table: table.clone(),
                columns,
                null_columns,
                len: 0,
            });
        }
        let lookups = self.questions.lookups.get_mut(question)?;
        for ((_, values), (_, scalar)) in lookups.columns.iter_mut().zip(columns) {
            values.push(scalar);
        }
        let index = lookups.len;
        lookups.len += 1;
        Some(Asked { question, index })
    }
}

/// Message for a value of a column that references a hidden table.
fn hidden_target() -> Reason {
    let message = "this column references a table that you may not read, so only null fits";
    Reason::new(ErrorCode::UnknownTable, message)
}

/// Message for a table name that the organization does not have.
pub(super) fn no_table(name: &str) -> Reason {
    Reason::new(
        ErrorCode::UnknownTable,
        format!("there is no table \"{}\"", quoted(name)),
    )
}

/// Values of a lookup object, in the order of the table's columns.
struct WantedValues {
    columns: Vec<(ColumnRef, Scalar)>,
    null_columns: Vec<ColumnRef>,
}

impl WantedValues {
    fn read(map: &Map<String, Value>, table: &Table) -> Result<Self, Reason> {
        let target = &table.name;
        if map.is_empty() {
            return Err(Reason::new(
                ErrorCode::InvalidLookup,
                format!("a lookup object needs at least one column of \"{target}\""),
            ));
        }
        let mut wanted = Self {
            columns: Vec::with_capacity(map.len()),
            null_columns: Vec::new(),
        };
        for (name, value) in map {
            let Some(column) = table.column(name) else {
                return Err(Reason::new(
                    ErrorCode::UnknownColumn,
                    format!("lookup: \"{target}\" has no column \"{name}\""),
                ));
            };
            if column.data_type == DataType::Json {
                return Err(Reason::new(
                    ErrorCode::InvalidLookup,
                    format!("lookup: column \"{name}\" is json, by which no row can be looked up"),
                ));
            }
            if column.references.is_some()
                && value.as_str().is_some_and(|text| text.starts_with('@'))
            {
                return Err(Reason::new(
                    ErrorCode::InvalidLookup,
                    format!(
                        "lookup: column \"{name}\" takes no label: a lookup finds only rows that existed before the request"
                    ),
                ));
            }
            match Cell::from(value.clone()).to_scalar(column.data_type) {
                Err(problem) => {
                    return Err(Reason::new(
                        ErrorCode::WrongType,
                        format!("lookup: column \"{name}\" {problem}"),
                    ));
                }
                // In SQL nothing equals null, so it needs a separate condition.
                Ok(None) => wanted.null_columns.push(column.clone()),
                // The type is that of the column, so the question can be one typed array for all rows.
                Ok(Some(scalar)) => wanted.columns.push((column.clone(), scalar)),
            }
        }
        // Objects that name the same columns in another order share a question.
        wanted.columns.sort_by_key(|(column, _)| column.position());
        wanted.null_columns.sort_by_key(ColumnRef::position);
        Ok(wanted)
    }
}
