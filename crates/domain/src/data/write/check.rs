//! Reads every cell with its column's type, and gathers what must be asked.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use uuid::Uuid;

use super::{
    Action, Answers, InputColumn, LABEL_KEY, MAX_ROWS, MAX_SERIES_VALUES, Mode, OnMatch, Problem,
    Questions, RowAddress, RowKey, StepColumn, TableStep, TableWrite, WritePlan, WriteRequest,
    cell::{Cell, scalar_of_json},
    check_series::{CheckedSeries, check_series, plan_series},
    problem_list::{Place, ProblemList},
    reference::{Label, Reference, ReferenceReader, generate_key, key_of, resolve},
};
use crate::{
    catalog::{Catalog, CatalogVersion, Column, PlatformTable, SYSTEM_COLUMNS, Table},
    scalar::{KeyValue, Scalar, Values},
};

/// A request whose cells are read; what depends on the database is still open.
pub struct Checked {
    version: CatalogVersion,
    tables: Vec<Option<CheckedTable>>,
    series: Vec<CheckedSeries>,
    questions: Questions,
    labels: Vec<(String, RowAddress)>,
    problems: ProblemList,
    dry_run: bool,
    return_rows: bool,
}

struct CheckedTable {
    table: Arc<Table>,
    mode: Mode,
    on_match: OnMatch,
    cascade: bool,
    key: Vec<usize>,
    len: usize,
    columns: Vec<CheckedColumn>,
}

struct CheckedColumn {
    column: usize,
    /// Its place among the input's columns, for the order of problems.
    input: usize,
    content: Content,
    provided: Option<Vec<bool>>,
}

enum Content {
    Values(Values),
    References(Vec<Reference>),
}

/// Checks all of a request that can be checked without the database.
#[must_use]
pub fn check(request: WriteRequest, catalog: &Catalog) -> Checked {
    let mut problems = ProblemList::default();
    let rows: usize = request.tables.iter().map(|write| write.rows.len()).sum();
    if rows > MAX_ROWS {
        problems.add(Place::REQUEST, || {
            Problem::of_the_request(format!(
                "{rows} rows in one request; at most {MAX_ROWS} are accepted, so split it"
            ))
        });
    }
    let values: usize = request
        .series
        .iter()
        .flat_map(|series| &series.columns)
        .map(|(_, values)| values.len())
        .sum();
    if values > MAX_SERIES_VALUES {
        problems.add(Place::REQUEST, || {
            Problem::of_the_request(format!(
                "{values} series values in one request; at most {MAX_SERIES_VALUES} are accepted, so split it"
            ))
        });
    }
    let mut references = ReferenceReader::new(catalog);
    let mut writes = Vec::with_capacity(request.tables.len());
    for (index, mut write) in request.tables.into_iter().enumerate() {
        let rows = std::mem::take(&mut write.rows);
        let len = rows.len();
        let mut columns = rows.into_columns();
        if let Some(at) = columns.iter().position(|column| column.name == LABEL_KEY) {
            let labels = columns.remove(at);
            read_labels(index, &write, labels, &mut references.labels, &mut problems);
        }
        writes.push((write, columns, len));
    }
    let mut tables = Vec::with_capacity(writes.len());
    for (index, (write, columns, len)) in writes.into_iter().enumerate() {
        let mut checker = TableChecker {
            index,
            references: &mut references,
            problems: &mut problems,
        };
        tables.push(checker.check(catalog, &write, columns, len));
    }
    let series = request
        .series
        .into_iter()
        .enumerate()
        .filter_map(|(index, series)| {
            check_series(index, series, catalog, &mut references, &mut problems)
        })
        .collect();
    let mut labels: Vec<(String, RowAddress)> = references
        .labels
        .into_iter()
        .map(|(name, label)| (name, label.address))
        .collect();
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
    }
}

fn read_labels(
    index: usize,
    write: &TableWrite,
    column: InputColumn,
    labels: &mut HashMap<String, Label>,
    problems: &mut ProblemList,
) {
    for (row, cell) in column.cells.into_iter().enumerate() {
        let path = || format!("tables[{index}].rows[{row}].{LABEL_KEY}");
        let place = Place::cell(index, row, 0);
        match cell {
            Cell::Absent | Cell::Null => {}
            Cell::Text(name) if !name.is_empty() && !name.contains('\0') => {
                match labels.entry(name) {
                    Entry::Occupied(label) => problems.add(place, || {
                        Problem::at(path(), format!("label \"{}\" is given twice", label.key()))
                    }),
                    Entry::Vacant(label) => {
                        let address = RowAddress { table: index, row };
                        label.insert(Label {
                            address,
                            table: write.table.clone(),
                            mode: write.mode,
                        });
                    }
                }
            }
            other => problems.add(place, || {
                Problem::at(
                    path(),
                    format!(
                        "a label must be a string that is not empty, not {}",
                        other.kind()
                    ),
                )
            }),
        }
    }
}

struct TableChecker<'a, 'c> {
    index: usize,
    references: &'a mut ReferenceReader<'c>,
    problems: &'a mut ProblemList,
}

impl TableChecker<'_, '_> {
    fn check(
        &mut self,
        catalog: &Catalog,
        write: &TableWrite,
        columns: Vec<InputColumn>,
        len: usize,
    ) -> Option<CheckedTable> {
        let Some(table) = catalog.table(&write.table).map(Arc::clone) else {
            let name: String = write.table.chars().take(100).collect();
            let message = if PlatformTable::from_name(&write.table).is_some() {
                format!("\"{name}\" is the platform's own table, which is read only")
            } else {
                format!("there is no table \"{name}\"")
            };
            self.at_table("table", message);
            return None;
        };
        if table.is_raw() {
            self.at_table(
                "table",
                format!(
                    "\"{}\" is a raw table; write its points through \"series\"",
                    table.name
                ),
            );
            return None;
        }
        let key = self.check_key(&table, write);
        let (ordered, unknown) = match_columns(&table, columns);
        self.report_unknown(&table, unknown);
        let mut checked = Vec::with_capacity(ordered.len());
        for (input, column_index, cells) in ordered {
            let Some(column) = table.columns.get(column_index) else {
                continue;
            };
            if write.mode == Mode::Delete && !key.contains(&column_index) {
                self.report_each_given(
                    input,
                    &column.name,
                    &cells,
                    "a delete takes only the key columns",
                );
                continue;
            }
            checked.push(self.check_column(&table, write, column_index, column, input, cells));
        }
        match write.mode {
            Mode::Insert => self.complete_insert(&table, &mut checked, len),
            Mode::Upsert => add_defaults(&table, &mut checked, len),
            Mode::Update | Mode::Delete => {}
        }
        if write.mode != Mode::Insert {
            self.require_keys(&table, &key, &checked, len);
        }
        Some(CheckedTable {
            table,
            mode: write.mode,
            on_match: write.on_match,
            cascade: write.cascade,
            key,
            len,
            columns: checked,
        })
    }

    fn at_table(&mut self, part: &str, message: String) {
        let index = self.index;
        self.problems.add(Place::table(index), || {
            Problem::at(format!("tables[{index}].{part}"), message)
        });
    }

    fn at_cell(
        &mut self,
        row: usize,
        input: usize,
        column: &str,
        message: impl FnOnce() -> String,
    ) {
        let index = self.index;
        self.problems.add(Place::cell(index, row, input + 1), || {
            Problem::at(format!("tables[{index}].rows[{row}].{column}"), message())
        });
    }

    /// The key columns' indices; for an insert none.
    fn check_key(&mut self, table: &Table, write: &TableWrite) -> Vec<usize> {
        if write.mode == Mode::Insert {
            return Vec::new();
        }
        let Some(names) = &write.key else {
            return table
                .primary_key()
                .map(|(index, _)| index)
                .into_iter()
                .collect();
        };
        if names.is_empty() {
            self.at_table("key", "a key needs at least one column".to_owned());
        }
        let mut key = Vec::with_capacity(names.len());
        for (position, name) in names.iter().enumerate() {
            let part = format!("key[{position}]");
            match table.column(name) {
                None => self.at_table(&part, unknown_column(table, name)),
                Some((_, column)) if column.data_type == crate::scalar::DataType::Json => {
                    self.at_table(
                        &part,
                        format!("column \"{name}\" is json, by which rows cannot be matched"),
                    );
                }
                Some((index, _)) if key.contains(&index) => {
                    self.at_table(&part, format!("column \"{name}\" is given twice"));
                }
                Some((index, _)) => key.push(index),
            }
        }
        key
    }

    fn report_unknown(&mut self, table: &Table, unknown: Vec<(usize, InputColumn)>) {
        for (input, column) in unknown {
            let message = unknown_column(table, &column.name);
            self.report_each_given(input, &column.name, &column.cells, &message);
        }
    }

    fn report_each_given(&mut self, input: usize, name: &str, cells: &[Cell], message: &str) {
        let shown: String = name.chars().take(100).collect();
        for (row, cell) in cells.iter().enumerate() {
            if *cell != Cell::Absent {
                self.at_cell(row, input, &shown, || message.to_owned());
            }
        }
    }

    fn check_column(
        &mut self,
        table: &Table,
        write: &TableWrite,
        index: usize,
        column: &Column,
        input: usize,
        cells: Vec<Cell>,
    ) -> CheckedColumn {
        let absent = cells.contains(&Cell::Absent);
        let provided = absent.then(|| cells.iter().map(|cell| *cell != Cell::Absent).collect());
        let content = if let Some(target) = &column.references {
            Content::References(self.read_references(column, target, input, cells))
        } else {
            let default = column
                .default
                .as_ref()
                .and_then(|value| scalar_of_json(value, column.data_type));
            let values = self.read_values(column, default.as_ref(), input, cells);
            if column.is_primary_key {
                self.note_keys(table, write, input, &values);
            }
            Content::Values(values)
        };
        CheckedColumn {
            column: index,
            input,
            content,
            provided,
        }
    }

    fn read_values(
        &mut self,
        column: &Column,
        default: Option<&Scalar>,
        input: usize,
        cells: Vec<Cell>,
    ) -> Values {
        let mut values = Values::with_capacity(column.data_type, cells.len());
        for (row, cell) in cells.into_iter().enumerate() {
            if cell == Cell::Absent {
                match default {
                    Some(default) => values.push(default.clone()),
                    None => values.push_null(),
                }
                continue;
            }
            match cell.into_scalar(column.data_type) {
                Ok(Some(scalar)) => values.push(scalar),
                Ok(None) => {
                    if !column.is_nullable {
                        self.at_cell(row, input, &column.name, || "must not be null".to_owned());
                    }
                    values.push_null();
                }
                Err(message) => {
                    self.at_cell(row, input, &column.name, || message);
                    values.push_null();
                }
            }
        }
        values
    }

    fn read_references(
        &mut self,
        column: &Column,
        target: &str,
        input: usize,
        cells: Vec<Cell>,
    ) -> Vec<Reference> {
        let mut references = Vec::with_capacity(cells.len());
        for (row, cell) in cells.into_iter().enumerate() {
            if cell == Cell::Null && !column.is_nullable {
                self.at_cell(row, input, &column.name, || "must not be null".to_owned());
            }
            let at = RowAddress {
                table: self.index,
                row,
            };
            let reference =
                self.references
                    .read(cell, target, Some(at))
                    .unwrap_or_else(|message| {
                        self.at_cell(row, input, &column.name, || message);
                        Reference::None
                    });
            references.push(reference);
        }
        references
    }

    /// Notes which ids exist from which row on, and refuses those that no reference could name.
    fn note_keys(&mut self, table: &Table, write: &TableWrite, input: usize, values: &Values) {
        let key_name = table
            .primary_key()
            .map_or("id", |(_, key)| key.name.as_str());
        let by_key = match &write.key {
            None => true,
            Some(names) => names.len() == 1 && names.first().is_some_and(|name| name == key_name),
        };
        for row in 0..values.len() {
            let Some(key) = values.get(row).and_then(key_of) else {
                continue;
            };
            if let KeyValue::Text(text) = &key
                && text.starts_with('@')
                && matches!(write.mode, Mode::Insert | Mode::Upsert)
            {
                self.at_cell(row, input, key_name, || {
                    "an id must not begin with \"@\", which marks labels".to_owned()
                });
            }
            let exists_from_here = match write.mode {
                Mode::Insert => true,
                Mode::Upsert | Mode::Update => by_key,
                Mode::Delete => false,
            };
            if exists_from_here {
                let shown = key.to_string();
                let first = self.references.give_key(
                    &table.name,
                    key,
                    RowAddress {
                        table: self.index,
                        row,
                    },
                );
                if write.mode == Mode::Insert
                    && let Some(first) = first.filter(|first| first.table == self.index)
                {
                    self.at_cell(row, input, key_name, || {
                        format!(
                            "the key \"{shown}\" is given twice (first in rows[{}])",
                            first.row
                        )
                    });
                }
            }
        }
    }

    fn complete_insert(&mut self, table: &Table, columns: &mut Vec<CheckedColumn>, len: usize) {
        for (index, column) in table.columns.iter().enumerate() {
            let generated =
                column.is_primary_key && generate_key(column.data_type, &mut Uuid::nil).is_some();
            if column.is_nullable || column.default.is_some() || generated {
                continue;
            }
            let given = columns.iter().find(|given| given.column == index);
            for row in 0..len {
                let missing = given.is_none_or(|given| {
                    given
                        .provided
                        .as_ref()
                        .is_some_and(|provided| provided.get(row) != Some(&true))
                });
                if missing {
                    let (table_index, name) = (self.index, &column.name);
                    self.problems.add(Place::cell(table_index, row, 0), || {
                        Problem::at(
                            format!("tables[{table_index}].rows[{row}]"),
                            format!("the required column \"{name}\" is missing"),
                        )
                    });
                }
            }
        }
        add_defaults(table, columns, len);
    }

    fn require_keys(
        &mut self,
        table: &Table,
        key: &[usize],
        columns: &[CheckedColumn],
        len: usize,
    ) {
        for index in key {
            let Some(column) = table.columns.get(*index) else {
                continue;
            };
            let given = columns.iter().find(|given| given.column == *index);
            for row in 0..len {
                let provided = given.is_some_and(|given| {
                    given
                        .provided
                        .as_ref()
                        .is_none_or(|provided| provided.get(row) == Some(&true))
                });
                let (table_index, name) = (self.index, &column.name);
                if !provided {
                    self.problems.add(Place::cell(table_index, row, 0), || {
                        Problem::at(
                            format!("tables[{table_index}].rows[{row}]"),
                            format!("the key column \"{name}\" is missing"),
                        )
                    });
                } else if column.is_nullable && given.is_some_and(|given| given.is_null(row)) {
                    let input = given.map_or(0, |given| given.input);
                    self.at_cell(row, input, name, || {
                        "a key column must not be null: null matches no row".to_owned()
                    });
                }
            }
        }
    }
}

/// The input's columns with their indices in the table, the primary key first, so that a row
/// may reference an id given before it; and those that the table does not have.
#[expect(
    clippy::type_complexity,
    reason = "two lists of what was matched, used once"
)]
fn match_columns(
    table: &Table,
    columns: Vec<InputColumn>,
) -> (Vec<(usize, usize, Vec<Cell>)>, Vec<(usize, InputColumn)>) {
    let mut matched = Vec::with_capacity(columns.len());
    let mut unknown = Vec::new();
    for (input, column) in columns.into_iter().enumerate() {
        match table.column(&column.name) {
            Some((index, _)) => matched.push((input, index, column.cells)),
            None => unknown.push((input, column)),
        }
    }
    let key = table.primary_key().map(|(index, _)| index);
    matched.sort_by_key(|(input, index, _)| (Some(*index) != key, *input));
    (matched, unknown)
}

impl CheckedColumn {
    fn is_null(&self, row: usize) -> bool {
        match &self.content {
            Content::Values(values) => values.get(row).is_none(),
            Content::References(references) => {
                matches!(references.get(row), None | Some(Reference::None))
            }
        }
    }
}

/// Columns that no row gives, but that have a default.
fn add_defaults(table: &Table, columns: &mut Vec<CheckedColumn>, len: usize) {
    for (index, column) in table.columns.iter().enumerate() {
        let default = column
            .default
            .as_ref()
            .and_then(|value| scalar_of_json(value, column.data_type));
        if let Some(default) = default
            && columns.iter().all(|given| given.column != index)
        {
            let mut values = Values::with_capacity(column.data_type, len);
            (0..len).for_each(|_| values.push(default.clone()));
            columns.push(CheckedColumn {
                column: index,
                input: usize::MAX - 1,
                content: Content::Values(values),
                provided: Some(vec![false; len]),
            });
        }
    }
}

fn unknown_column(table: &Table, name: &str) -> String {
    let shown: String = name.chars().take(100).collect();
    if SYSTEM_COLUMNS.iter().any(|(system, _)| *system == name) {
        return format!("column \"{shown}\" is kept by the server and cannot be written");
    }
    if let Some(column) = table
        .columns
        .iter()
        .find(|column| column.references.is_some() && column.sql_name() == name)
    {
        return format!(
            "\"{}\" has no column \"{shown}\"; the reference is called \"{}\"",
            table.name, column.name
        );
    }
    format!("\"{}\" has no column \"{shown}\"", table.name)
}

impl Checked {
    /// What must be asked of the database before [`Checked::plan`].
    #[must_use]
    pub fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Plans the write, now that the questions are answered. `new_id` makes the keys of rows that
    /// give none.
    ///
    /// # Errors
    /// Every problem of the request, in its order; past 100 of them a last one counts the rest.
    pub fn plan(
        self,
        answers: &Answers,
        new_id: &mut dyn FnMut() -> Uuid,
    ) -> Result<WritePlan, Vec<Problem>> {
        let Self {
            version,
            tables,
            series,
            questions,
            labels,
            mut problems,
            dry_run,
            return_rows,
        } = self;
        let mut steps: Vec<TableStep> = Vec::with_capacity(tables.len());
        for (index, table) in tables.into_iter().enumerate() {
            // A table that could not be checked has reported so; nothing refers to its rows' keys.
            let Some(table) = table else {
                steps.push(TableStep::nothing());
                continue;
            };
            let mut planner = TablePlanner {
                index,
                questions: &questions,
                answers,
                steps: &steps,
                problems: &mut problems,
            };
            let step = planner.plan(table, new_id);
            steps.push(step);
        }
        let series = plan_series(series, &questions, answers, &steps, &mut problems);
        if problems.is_empty() {
            Ok(WritePlan {
                version,
                tables: steps,
                series,
                labels,
                dry_run,
                return_rows,
            })
        } else {
            Err(problems.into_problems())
        }
    }
}

struct TablePlanner<'a> {
    index: usize,
    questions: &'a Questions,
    answers: &'a Answers,
    steps: &'a [TableStep],
    problems: &'a mut ProblemList,
}

impl TablePlanner<'_> {
    fn plan(&mut self, checked: CheckedTable, new_id: &mut dyn FnMut() -> Uuid) -> TableStep {
        let CheckedTable {
            table,
            mode,
            on_match,
            cascade,
            key,
            len,
            columns,
        } = checked;
        let keys = insert_keys(&table, mode, &columns, len, new_id);
        let mut planned = Vec::with_capacity(columns.len());
        for column in columns {
            let is_key = key.contains(&column.column);
            planned.push(self.plan_column(
                &table,
                column,
                keys.as_ref().filter(|_| mode == Mode::Insert),
                is_key,
            ));
        }
        let mut new_keys = None;
        if let (Some((index, _)), Some(keys)) = (table.primary_key(), keys) {
            if mode == Mode::Insert {
                planned.retain(|column| column.column != index);
                planned.insert(
                    0,
                    StepColumn {
                        column: index,
                        values: keys,
                        provided: None,
                        late: Vec::new(),
                    },
                );
            } else {
                new_keys = Some(keys);
            }
        }
        if mode != Mode::Insert {
            self.refuse_duplicate_keys(&table, &key, &planned, len);
        }
        let action = match mode {
            Mode::Insert => Action::Insert,
            Mode::Upsert => Action::Upsert { key, on_match },
            Mode::Update => Action::Update { key, on_match },
            Mode::Delete => Action::Delete { key, cascade },
        };
        TableStep {
            table,
            action,
            len,
            columns: planned,
            new_keys,
        }
    }

    fn plan_column(
        &mut self,
        table: &Table,
        column: CheckedColumn,
        own_insert_keys: Option<&Values>,
        is_key: bool,
    ) -> StepColumn {
        let CheckedColumn {
            column: index,
            input,
            content,
            provided,
        } = column;
        let (values, late) = match content {
            Content::Values(values) => (values, Vec::new()),
            Content::References(references) => {
                self.resolve_column(table, index, input, &references, own_insert_keys, is_key)
            }
        };
        StepColumn {
            column: index,
            values,
            provided,
            late,
        }
    }

    fn resolve_column(
        &mut self,
        table: &Table,
        index: usize,
        input: usize,
        references: &[Reference],
        own_insert_keys: Option<&Values>,
        is_key: bool,
    ) -> (Values, Vec<(usize, RowAddress)>) {
        let Some(column) = table.columns.get(index) else {
            return (Values::Text(Vec::new()), Vec::new());
        };
        let mut values = Values::with_capacity(column.data_type, references.len());
        let mut late = Vec::new();
        let (this, steps) = (self.index, self.steps);
        for (row, reference) in references.iter().enumerate() {
            let known_key = |address: RowAddress| {
                if address.table == this {
                    own_insert_keys
                        .and_then(|keys| keys.get(address.row))
                        .and_then(key_of)
                } else {
                    known_insert_key(steps, address)
                }
            };
            let resolved = match resolve(reference, self.questions, self.answers, known_key) {
                // All rows of a table write are matched at once.
                Ok(Some(RowKey::Late(address))) if is_key && address.table == this => Err(
                    "a key column cannot refer to a row of the same table write, whose rows are matched together; put that row into an earlier one".to_owned(),
                ),
                other => other,
            };
            match resolved {
                Ok(None) => values.push_null(),
                Ok(Some(RowKey::Known(key))) => values.push(key.into()),
                Ok(Some(RowKey::Late(address))) => {
                    late.push((row, address));
                    values.push_null();
                }
                Err(message) => {
                    let table_index = self.index;
                    self.problems
                        .add(Place::cell(table_index, row, input + 1), || {
                            Problem::at(
                                format!("tables[{table_index}].rows[{row}].{}", column.name),
                                message,
                            )
                        });
                    values.push_null();
                }
            }
        }
        (values, late)
    }

    fn refuse_duplicate_keys(
        &mut self,
        table: &Table,
        key: &[usize],
        columns: &[StepColumn],
        len: usize,
    ) {
        let key_columns: Vec<&StepColumn> = key
            .iter()
            .filter_map(|index| columns.iter().find(|column| column.column == *index))
            .collect();
        if key.is_empty() || key_columns.len() != key.len() {
            return;
        }
        let mut seen: HashMap<String, usize> = HashMap::with_capacity(len);
        for row in 0..len {
            let parts: Option<Vec<String>> = key_columns
                .iter()
                .map(|column| {
                    let late = column.late.iter().find(|(at, _)| *at == row);
                    late.map(|(_, address)| format!("{address:?}"))
                        .or_else(|| column.values.get(row).map(|scalar| format!("{scalar:?}")))
                })
                .collect();
            let Some(parts) = parts else { continue };
            if let Some(first) = seen.get(&parts.join("\u{1f}")).copied() {
                let (index, names) = (self.index, key_names(table, key));
                self.problems.add(Place::cell(index, row, 0), || {
                    Problem::at(
                        format!("tables[{index}].rows[{row}]"),
                        format!("has the same key ({names}) as rows[{first}] of this table write"),
                    )
                });
            } else {
                seen.insert(parts.join("\u{1f}"), row);
            }
        }
    }
}

/// The primary keys of rows that are or may be created: given or generated.
fn insert_keys(
    table: &Table,
    mode: Mode,
    columns: &[CheckedColumn],
    len: usize,
    new_id: &mut dyn FnMut() -> Uuid,
) -> Option<Values> {
    let (index, key) = table
        .primary_key()
        .filter(|_| matches!(mode, Mode::Insert | Mode::Upsert))?;
    let given = columns.iter().find_map(|column| match &column.content {
        Content::Values(values) if column.column == index => Some(values),
        _ => None,
    });
    let mut keys = Values::with_capacity(key.data_type, len);
    for row in 0..len {
        match given.and_then(|given| given.get(row)) {
            Some(scalar) => keys.push(scalar),
            None => match generate_key(key.data_type, new_id) {
                Some(generated) => keys.push(generated.into()),
                None => keys.push_null(),
            },
        }
    }
    Some(keys)
}

fn key_names(table: &Table, key: &[usize]) -> String {
    let names: Vec<&str> = key
        .iter()
        .filter_map(|index| table.columns.get(*index))
        .map(|column| column.name.as_str())
        .collect();
    names.join(", ")
}

/// The key of a row that an insert of this request creates.
pub(super) fn known_insert_key(steps: &[TableStep], address: RowAddress) -> Option<KeyValue> {
    let step = steps
        .get(address.table)
        .filter(|step| step.action == Action::Insert)?;
    let (index, _) = step.table.primary_key()?;
    step.column(index)?.values.get(address.row).and_then(key_of)
}

impl TableStep {
    /// Stands for a table write that has problems; never part of a plan.
    fn nothing() -> Self {
        let table = Table {
            id: None,
            name: String::new(),
            description: None,
            category: crate::catalog::SemanticCategory::Curated,
            origin: crate::catalog::Origin::Organization,
            columns: Vec::new(),
            unique_together: Vec::new(),
        };
        Self {
            table: Arc::new(table),
            action: Action::Insert,
            len: 0,
            columns: Vec::new(),
            new_keys: None,
        }
    }
}
