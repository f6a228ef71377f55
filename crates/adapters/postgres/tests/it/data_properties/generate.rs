//! Schemas and requests, put together from a list of numbers: a shorter list, or smaller numbers,
//! make a simpler case, so that failures shrink.

use std::collections::BTreeMap;

use labdata_domain::{
    catalog::{ColumnDefinition, SemanticCategory, TableDefinition},
    data::write::{Mode, OnMatch, SeriesWrite, TableWrite, WriteRequest},
    scalar::DataType,
};
use labdata_port_contracts::{
    catalog::definitions::{column, curated, key, raw},
    data::lab::{request, series, table_write},
};
use serde_json::{Map, Value, json};

const TYPES: [DataType; 8] = [
    DataType::String,
    DataType::Integer,
    DataType::Float,
    DataType::Boolean,
    DataType::Text,
    DataType::Datetime,
    DataType::Date,
    DataType::Json,
];

/// Numbers to choose by; zeros when they are used up.
pub(super) struct Choices {
    list: std::vec::IntoIter<u16>,
}

impl Choices {
    pub(super) fn new(list: Vec<u16>) -> Self {
        Self {
            list: list.into_iter(),
        }
    }

    pub(super) fn are_used_up(&self) -> bool {
        self.list.len() == 0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.list.next().unwrap_or_default()) % limit.max(1)
    }

    /// True once in `times` cases on average.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    fn of<T: Copy>(&mut self, things: &[T]) -> T {
        let index = self.below(things.len());
        *things.get(index).expect("something to choose from")
    }
}

/// Tables; references point at tables before, or at their own.
pub(super) struct Schema {
    pub(super) tables: Vec<TableDefinition>,
}

/// The rows that there are, by table, so that requests mostly speak of them.
pub(super) type Known = BTreeMap<String, Vec<Map<String, Value>>>;

/// A request in the making.
struct Draft<'a> {
    choices: &'a mut Choices,
    known: &'a Known,
    /// Labels given so far, with their tables.
    labels: Vec<(String, String)>,
}

/// One thing to do.
#[derive(Debug)]
pub(super) enum Step {
    Write(WriteRequest),
    /// Revert the execution of that turn.
    Revert(u64),
}

/// The primary key that a table has.
fn key_of(table: &TableDefinition) -> (&str, DataType) {
    let own = table.columns.iter().find(|column| column.is_primary_key);
    own.map_or(("id", DataType::String), |column| {
        (column.name.as_str(), column.data_type)
    })
}

impl Schema {
    pub(super) fn generate(choices: &mut Choices) -> Self {
        let mut tables: Vec<TableDefinition> = Vec::new();
        for index in 0..2 + choices.below(3) {
            let table = curated_table(choices, index, &tables);
            tables.push(table);
        }
        for index in 0..=choices.below(2) {
            let table = raw_table(choices, index, &tables);
            tables.push(table);
        }
        Self { tables }
    }

    fn table(&self, name: &str) -> &TableDefinition {
        let found = self.tables.iter().find(|table| table.name == name);
        found.expect("a table of the schema")
    }

    pub(super) fn step(&self, choices: &mut Choices, turn: u64, known: &Known) -> Step {
        if turn > 1 && choices.once_in(8) {
            let back = u64::try_from(choices.below(4)).unwrap_or_default();
            return Step::Revert(turn.saturating_sub(1 + back).max(1));
        }
        let of = |category| {
            let tables = self.tables.iter();
            tables
                .filter(|table| table.category == category)
                .collect::<Vec<_>>()
        };
        let (curated, raw) = (of(SemanticCategory::Curated), of(SemanticCategory::Raw));
        let mut draft = Draft {
            choices,
            known,
            labels: Vec::new(),
        };
        let mut tables = Vec::new();
        for _ in 0..draft.choices.of(&[1, 1, 2, 3]) {
            let table = draft.choices.of(&curated);
            tables.push(self.table_write(&mut draft, table));
        }
        let mut all_series = Vec::new();
        for _ in 0..draft.choices.of(&[0, 0, 1, 2]) {
            let table = draft.choices.of(&raw);
            all_series.extend(self.series_write(&mut draft, table));
        }
        Step::Write(WriteRequest {
            dry_run: draft.choices.once_in(8),
            return_rows: draft.choices.once_in(3),
            ..request(tables, all_series)
        })
    }

    fn table_write(&self, draft: &mut Draft<'_>, table: &TableDefinition) -> TableWrite {
        let mode = if draft.rows_of(table).len() < 3 {
            Mode::Insert
        } else {
            draft.choices.of(&[
                Mode::Upsert,
                Mode::Update,
                Mode::Insert,
                Mode::Upsert,
                Mode::Delete,
            ])
        };
        let (own_key, _) = key_of(table);
        let key = (mode != Mode::Insert && draft.choices.once_in(2)).then(|| {
            let columns: Vec<&ColumnDefinition> = table
                .columns
                .iter()
                .filter(|column| column.data_type != DataType::Json || draft.choices.once_in(20))
                .collect();
            let count = 1 + usize::from(draft.choices.once_in(3));
            let names = (0..count).filter_map(|_| columns.get(draft.choices.below(columns.len())));
            names.map(|column| column.name.clone()).collect::<Vec<_>>()
        });
        let key = key.filter(|names| !names.is_empty());
        let matched = key.clone().unwrap_or_else(|| vec![own_key.to_owned()]);
        let rows: Vec<Value> = (0..draft.choices.of(&[1, 1, 2, 2, 3]))
            .map(|_| self.row(draft, table, mode, &matched))
            .collect();
        let mut write = table_write(mode, &table.name, Value::from(rows));
        write.key = key;
        write.cascade = draft.choices.once_in(2);
        write.on_match = draft
            .choices
            .of(&[OnMatch::Overwrite, OnMatch::FillMissing]);
        write
    }

    fn row(
        &self,
        draft: &mut Draft<'_>,
        table: &TableDefinition,
        mode: Mode,
        matched: &[String],
    ) -> Value {
        let mut row = Map::new();
        let (own_key, key_type) = key_of(table);
        let is_key = |name: &str| matched.iter().any(|key| key == name);
        // What an existing row has, where one is to be matched.
        let meant = draft.row(table).filter(|_| {
            mode != Mode::Insert && (mode != Mode::Upsert || draft.choices.below(3) > 0)
        });
        let key_wanted = if mode == Mode::Insert {
            key_type == DataType::Integer || !draft.choices.once_in(2)
        } else {
            is_key(own_key) || (mode != Mode::Delete && draft.choices.once_in(8))
        };
        if key_wanted {
            let same = meant.as_ref().and_then(|row| row.get(own_key));
            let value = same.cloned();
            let value = value.unwrap_or_else(|| key_value(draft.choices, key_type));
            row.insert(own_key.to_owned(), value);
        }
        for column in table.columns.iter().filter(|column| !column.is_primary_key) {
            let same = meant.as_ref().and_then(|row| row.get(&column.name));
            if is_key(&column.name) {
                let same = same.filter(|value| !value.is_null() && !draft.choices.once_in(10));
                let value = same.cloned();
                let value = value.unwrap_or_else(|| self.cell(draft, column));
                row.insert(column.name.clone(), value);
            } else if mode != Mode::Delete
                && (draft.choices.below(3) > 0 || (mode != Mode::Update && !column.is_nullable))
            {
                row.insert(column.name.clone(), self.cell(draft, column));
            }
        }
        if draft.choices.once_in(3) {
            let label = format!("l{}", draft.labels.len());
            row.insert("_ref".to_owned(), json!(label));
            if mode != Mode::Delete || draft.choices.once_in(10) {
                draft.labels.push((label, table.name.clone()));
            } else {
                draft.labels.push((label, String::new()));
            }
        }
        Value::Object(row)
    }

    fn cell(&self, draft: &mut Draft<'_>, column: &ColumnDefinition) -> Value {
        if draft
            .choices
            .once_in(if column.is_nullable { 5 } else { 40 })
        {
            return Value::Null;
        }
        match &column.references {
            Some(target) => self
                .reference(draft, target)
                .filter(|_| !draft.choices.once_in(30))
                .unwrap_or_else(|| {
                    if column.is_nullable {
                        Value::Null
                    } else {
                        key_value(draft.choices, column.data_type)
                    }
                }),
            None if draft.choices.once_in(100) => json!(7.5),
            None => value(draft.choices, column.data_type),
        }
    }

    /// A label, or the id of a row that there is, or a lookup of it.
    fn reference(&self, draft: &mut Draft<'_>, target: &str) -> Option<Value> {
        let target = self.table(target);
        let labels: Vec<&String> = draft
            .labels
            .iter()
            .filter(|(_, table)| *table == target.name)
            .map(|(label, _)| label)
            .collect();
        if !labels.is_empty() && draft.choices.once_in(2) {
            let label = labels.get(draft.choices.below(labels.len()))?;
            return Some(json!(format!("@{label}")));
        }
        let row = draft.row(target)?;
        if draft.choices.below(4) < 3 {
            return row.get(key_of(target).0).cloned();
        }
        let mut lookup = Map::new();
        for column in &target.columns {
            let wanted = column.is_unique || draft.choices.once_in(2);
            if column.data_type != DataType::Json && wanted {
                lookup.insert(column.name.clone(), row.get(&column.name)?.clone());
            }
        }
        Some(Value::Object(lookup))
    }

    fn series_write(&self, draft: &mut Draft<'_>, table: &TableDefinition) -> Option<SeriesWrite> {
        let references: Vec<&ColumnDefinition> = table
            .columns
            .iter()
            .filter(|column| column.references.is_some())
            .collect();
        let parent_column = draft.choices.of(&references);
        let target = parent_column.references.as_deref().expect("a reference");
        let parent = self.reference(draft, target)?;
        let points = draft.choices.below(5);
        let mut columns = Map::new();
        for column in &table.columns {
            if column.name == parent_column.name || (column.is_nullable && draft.choices.once_in(4))
            {
                continue;
            }
            let values: Vec<Value> = if column.name == "order" {
                (0..points).map(|point| json!(point * 2)).collect()
            } else {
                (0..points).map(|_| self.cell(draft, column)).collect()
            };
            columns.insert(column.name.clone(), Value::from(values));
        }
        let mut write = series(&table.name, parent, Value::Object(columns));
        write.parent_column = Some(parent_column.name.clone());
        Some(write)
    }
}

impl Draft<'_> {
    fn rows_of(&self, table: &TableDefinition) -> &[Map<String, Value>] {
        self.known
            .get(&table.name)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// A row that there is.
    fn row(&mut self, table: &TableDefinition) -> Option<Map<String, Value>> {
        let place = self.choices.below(self.rows_of(table).len());
        self.rows_of(table).get(place).cloned()
    }
}

fn curated_table(
    choices: &mut Choices,
    index: usize,
    before: &[TableDefinition],
) -> TableDefinition {
    let mut columns = Vec::new();
    if choices.once_in(3) {
        let data_type = choices.of(&[DataType::Integer, DataType::Uuid]);
        columns.push(key("code", data_type));
    }
    for number in 0..=choices.below(3) {
        let data_type = choices.of(&TYPES);
        let comparable = data_type != DataType::Json;
        columns.push(ColumnDefinition {
            is_nullable: !choices.once_in(4),
            is_unique: choices.once_in(6) && comparable,
            default: choices.once_in(5).then(|| value(choices, data_type)),
            ..column(&format!("c{number}"), data_type)
        });
    }
    let name = format!("t{index}");
    let mut table = curated(&name, columns);
    let targets: Vec<(String, DataType)> = before
        .iter()
        .chain(std::iter::once(&table))
        .map(|target| (target.name.clone(), key_of(target).1))
        .collect();
    for (number, (target, data_type)) in targets.into_iter().enumerate() {
        if choices.once_in(2) {
            table.columns.push(ColumnDefinition {
                is_nullable: target == name || !choices.once_in(5),
                references: Some(target),
                ..column(&format!("r{number}"), data_type)
            });
        }
    }
    let comparable: Vec<String> = table
        .columns
        .iter()
        .filter(|column| column.data_type != DataType::Json && !column.is_primary_key)
        .map(|column| column.name.clone())
        .collect();
    if comparable.len() > 1 && choices.once_in(4) {
        table.unique_together = vec![comparable.into_iter().take(2).collect()];
    }
    table
}

fn raw_table(choices: &mut Choices, index: usize, before: &[TableDefinition]) -> TableDefinition {
    let curated: Vec<&TableDefinition> = before
        .iter()
        .filter(|table| table.category == SemanticCategory::Curated)
        .collect();
    let mut columns = Vec::new();
    for number in 0..=usize::from(choices.once_in(3)) {
        let target = choices.of(&curated);
        columns.push(ColumnDefinition {
            references: Some(target.name.clone()),
            ..column(&format!("parent{number}"), key_of(target).1)
        });
    }
    if choices.once_in(2) {
        columns.push(column("order", DataType::Integer));
    }
    for number in 0..=choices.below(2) {
        let data_type = choices.of(&TYPES);
        columns.push(ColumnDefinition {
            is_nullable: !choices.once_in(4),
            default: choices.once_in(5).then(|| value(choices, data_type)),
            ..column(&format!("v{number}"), data_type)
        });
    }
    raw(&format!("p{index}"), columns)
}

/// One of the few keys that rows are given.
fn key_value(choices: &mut Choices, data_type: DataType) -> Value {
    let number = choices.below(12);
    match data_type {
        DataType::Integer => json!(number),
        DataType::Uuid => json!(format!("0190d3a4-5b6c-7d8e-9f00-00000000000{number:x}")),
        _ => json!(format!("k{number}")),
    }
}

/// One of a few values, so that they often meet; now and then one of another type.
fn value(choices: &mut Choices, data_type: DataType) -> Value {
    let one = |choices: &mut Choices, values: &[Value]| {
        let index = choices.below(values.len());
        values.get(index).cloned().unwrap_or_default()
    };
    match data_type {
        DataType::String | DataType::Text => one(
            choices,
            &[
                json!("a"),
                json!("b"),
                json!("c"),
                json!("@"),
                json!(""),
                json!("d"),
                json!("e"),
                json!("é"),
            ],
        ),
        DataType::Integer => one(
            choices,
            &[
                json!(0),
                json!(1),
                json!(-2),
                json!(i64::MAX),
                json!(4),
                json!(5),
                json!(6),
            ],
        ),
        DataType::Float => one(
            choices,
            &[
                json!(0.5),
                json!(1.5),
                json!(-2.25),
                json!(1e-7),
                json!(3.5),
            ],
        ),
        DataType::Boolean => one(choices, &[json!(false), json!(true)]),
        DataType::Datetime => one(
            choices,
            &[
                json!("2026-01-01T00:00:00Z"),
                json!("2026-01-01T01:00:00.000001+01:00"),
                json!("1969-07-20T20:17:40Z"),
            ],
        ),
        DataType::Date => one(choices, &[json!("2026-01-01"), json!("0001-01-01")]),
        DataType::Uuid => key_value(choices, DataType::Uuid),
        DataType::Json => one(choices, &[json!({ "a": [1, null] }), json!("x"), json!([])]),
    }
}
