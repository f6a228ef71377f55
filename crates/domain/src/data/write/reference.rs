//! Foreign key values: ids, `@label` references to earlier rows, lookups.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    Answers, IdQuestion, LookupAnswer, LookupQuestion, Mode, Questions, RowAddress, RowKey,
    cell::Cell,
};
use crate::{
    catalog::Catalog,
    scalar::{DataType, KeyValue, Scalar, Values},
};

/// A foreign key value, read but not yet answered.
#[derive(Clone, Debug)]
pub(super) enum Reference {
    /// Null, absent, or already reported as a problem.
    None,
    /// The id of a row that this request gives before.
    Known(KeyValue),
    /// An id that must exist.
    Id { question: usize, index: usize },
    /// An earlier row of the request.
    Row(RowAddress),
    /// A lookup.
    Lookup { question: usize, index: usize },
}

/// A labelled row.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) address: RowAddress,
    pub(super) table: String,
    pub(super) mode: Mode,
}

type LookupShape = (String, Vec<usize>, Vec<usize>);

/// Reads references and gathers what must be asked about them, each question once.
pub(super) struct ReferenceReader<'a> {
    catalog: &'a Catalog,
    pub(super) labels: HashMap<String, Label>,
    given_keys: HashMap<String, HashMap<KeyValue, RowAddress>>,
    pub(super) questions: Questions,
    id_questions: HashMap<String, (usize, HashMap<KeyValue, usize>)>,
    lookup_questions: HashMap<LookupShape, usize>,
}

impl<'a> ReferenceReader<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            labels: HashMap::new(),
            given_keys: HashMap::new(),
            questions: Questions::default(),
            id_questions: HashMap::new(),
            lookup_questions: HashMap::new(),
        }
    }

    /// Notes that from this row on, a row with this key exists; returns where it was given before.
    pub(super) fn give_key(
        &mut self,
        table: &str,
        key: KeyValue,
        at: RowAddress,
    ) -> Option<RowAddress> {
        if !self.given_keys.contains_key(table) {
            self.given_keys.insert(table.to_owned(), HashMap::new());
        }
        let keys = self.given_keys.get_mut(table)?;
        if let Some(first) = keys.get(&key) {
            return Some(*first);
        }
        keys.insert(key, at);
        None
    }

    /// Reads a reference to `target`, for use in the row `at` (`None`: after all table writes).
    pub(super) fn read(
        &mut self,
        cell: Cell,
        target: &str,
        at: Option<RowAddress>,
    ) -> Result<Reference, String> {
        match cell {
            Cell::Absent | Cell::Null => Ok(Reference::None),
            Cell::Text(text) if text.starts_with('@') => self.read_label(&text, target, at),
            Cell::Object(map) => self.read_lookup(&map, target),
            cell => self.read_id(cell, target, at),
        }
    }

    fn read_label(
        &self,
        text: &str,
        target: &str,
        at: Option<RowAddress>,
    ) -> Result<Reference, String> {
        let name = text.get(1..).unwrap_or_default();
        let shown: String = text.chars().take(100).collect();
        let Some(label) = self.labels.get(name) else {
            return Err(format!("label \"{shown}\" is not defined in this request"));
        };
        if at.is_some_and(|at| label.address >= at) {
            return Err(format!(
                "label \"{shown}\" is defined later; a row may reference only rows before it"
            ));
        }
        if label.table != target {
            return Err(format!(
                "label \"{shown}\" is a row of \"{}\", but a row of \"{target}\" is needed",
                label.table
            ));
        }
        if label.mode == Mode::Delete {
            return Err(format!(
                "label \"{shown}\" is a row that this request deletes"
            ));
        }
        Ok(Reference::Row(label.address))
    }

    fn read_id(
        &mut self,
        cell: Cell,
        target: &str,
        at: Option<RowAddress>,
    ) -> Result<Reference, String> {
        let Some(table) = self.catalog.table(target) else {
            return Err(format!("there is no table \"{target}\""));
        };
        let key_type = table
            .primary_key()
            .map_or(DataType::String, |(_, key)| key.data_type);
        let kind = cell.kind();
        let Ok(Some(scalar)) = cell.into_scalar(key_type) else {
            return Err(format!(
                "must be the id of a row of \"{target}\" ({key_type}), an \"@label\" of an earlier row, or a lookup object, not {kind}"
            ));
        };
        let Some(key) = key_of(scalar) else {
            return Err(format!("\"{target}\" has no primary key to reference"));
        };
        let given = self.given_keys.get(target).and_then(|keys| keys.get(&key));
        if given.is_some_and(|given| at.is_none_or(|at| *given < at)) {
            return Ok(Reference::Known(key));
        }
        let table = Arc::clone(table);
        if !self.id_questions.contains_key(target) {
            self.id_questions.insert(
                target.to_owned(),
                (self.questions.ids.len(), HashMap::new()),
            );
            self.questions.ids.push(IdQuestion {
                table,
                keys: Vec::new(),
            });
        }
        let Some((question, known)) = self.id_questions.get_mut(target) else {
            return Err("this id cannot be asked for".to_owned());
        };
        let keys = self
            .questions
            .ids
            .get_mut(*question)
            .map(|question| &mut question.keys);
        let index = match (known.get(&key), keys) {
            (Some(index), _) => *index,
            (None, Some(keys)) => {
                known.insert(key.clone(), keys.len());
                keys.push(key);
                keys.len() - 1
            }
            (None, None) => return Err("this id cannot be asked for".to_owned()),
        };
        Ok(Reference::Id {
            question: *question,
            index,
        })
    }

    fn read_lookup(&mut self, map: &Map<String, Value>, target: &str) -> Result<Reference, String> {
        let Some(table) = self.catalog.table(target).map(Arc::clone) else {
            return Err(format!("there is no table \"{target}\""));
        };
        if map.is_empty() {
            return Err(format!(
                "a lookup object needs at least one column of \"{target}\""
            ));
        }
        let mut wanted: Vec<(usize, Scalar)> = Vec::with_capacity(map.len());
        let mut null_columns = Vec::new();
        for (name, value) in map {
            let Some((index, column)) = table.column(name) else {
                return Err(format!("lookup: \"{target}\" has no column \"{name}\""));
            };
            if column.data_type == DataType::Json {
                return Err(format!(
                    "lookup: column \"{name}\" is json, by which no row can be looked up"
                ));
            }
            if column.references.is_some()
                && value.as_str().is_some_and(|text| text.starts_with('@'))
            {
                return Err(format!(
                    "lookup: column \"{name}\" takes no label: a lookup finds only rows that existed before the request"
                ));
            }
            match Cell::from(value.clone()).into_scalar(column.data_type) {
                Err(problem) => return Err(format!("lookup: column \"{name}\" {problem}")),
                Ok(None) => null_columns.push(index),
                Ok(Some(scalar)) => wanted.push((index, scalar)),
            }
        }
        wanted.sort_by_key(|(index, _)| *index);
        null_columns.sort_unstable();
        let shape = (
            target.to_owned(),
            wanted.iter().map(|(index, _)| *index).collect(),
            null_columns.clone(),
        );
        let next = self.questions.lookups.len();
        let question = *self.lookup_questions.entry(shape).or_insert(next);
        if question == next {
            let columns = wanted
                .iter()
                .filter_map(|(index, _)| {
                    table
                        .columns
                        .get(*index)
                        .map(|column| (*index, Values::with_capacity(column.data_type, 1)))
                })
                .collect();
            self.questions.lookups.push(LookupQuestion {
                table,
                columns,
                null_columns,
                len: 0,
            });
        }
        let Some(asked) = self.questions.lookups.get_mut(question) else {
            return Err("this lookup cannot be asked for".to_owned());
        };
        for ((_, values), (_, scalar)) in asked.columns.iter_mut().zip(wanted) {
            values.push(scalar);
        }
        asked.len += 1;
        Ok(Reference::Lookup {
            question,
            index: asked.len - 1,
        })
    }
}

/// A scalar as a key; `None` for types that no key has.
pub(super) fn key_of(scalar: Scalar) -> Option<KeyValue> {
    match scalar {
        Scalar::Text(text) => Some(KeyValue::Text(text)),
        Scalar::Integer(number) => Some(KeyValue::Integer(number)),
        Scalar::Uuid(id) => Some(KeyValue::Uuid(id)),
        _ => None,
    }
}

/// A generated key of that type; `None` where keys of the type are not generated.
pub(super) fn generate_key(
    data_type: DataType,
    new_id: &mut dyn FnMut() -> Uuid,
) -> Option<KeyValue> {
    match data_type {
        DataType::String | DataType::Text => Some(KeyValue::Text(new_id().to_string())),
        DataType::Uuid => Some(KeyValue::Uuid(new_id())),
        _ => None,
    }
}

/// Turns an answered reference into a row's key.
pub(super) fn resolve(
    reference: &Reference,
    questions: &Questions,
    answers: &Answers,
    known_key: impl Fn(RowAddress) -> Option<KeyValue>,
) -> Result<Option<RowKey>, String> {
    match reference {
        Reference::None => Ok(None),
        Reference::Known(key) => Ok(Some(RowKey::Known(key.clone()))),
        Reference::Row(address) => Ok(Some(
            known_key(*address).map_or(RowKey::Late(*address), RowKey::Known),
        )),
        Reference::Id { question, index } => {
            let asked = questions.ids.get(*question);
            let key = asked.and_then(|asked| asked.keys.get(*index));
            let exists = answers
                .ids
                .get(*question)
                .and_then(|found| found.get(*index))
                == Some(&true);
            match key {
                Some(key) if exists => Ok(Some(RowKey::Known(key.clone()))),
                _ => Err(format!(
                    "no row of \"{}\" has the id \"{}\"",
                    asked.map_or("", |asked| asked.table.name.as_str()),
                    key.map(|key| key.to_string().chars().take(100).collect::<String>())
                        .unwrap_or_default()
                )),
            }
        }
        Reference::Lookup { question, index } => {
            let table = questions
                .lookups
                .get(*question)
                .map_or("", |asked| asked.table.name.as_str());
            match answers
                .lookups
                .get(*question)
                .and_then(|found| found.get(*index))
            {
                Some(LookupAnswer::One(key)) => Ok(Some(RowKey::Known(key.clone()))),
                Some(LookupAnswer::Several) => Err(format!(
                    "the lookup matches several rows of \"{table}\"; it must match exactly one"
                )),
                Some(LookupAnswer::None) | None => Err(format!(
                    "the lookup matches no row of \"{table}\" that existed before the request"
                )),
            }
        }
    }
}
