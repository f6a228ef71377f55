//! Columns of a table for the fields of a file.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    LinkedTable,
    units::{CHOOSABLE, other_unit},
};
use crate::{
    catalog::{Catalog, ColumnRef, KeyedTable, PlatformTable, SystemColumn, Table},
    data::write::{CellLookup, Problem, Reason, quoted, unknown_column, writable_table},
    refusal::ErrorCode,
    scalar::DataType,
};

/// Field of a file's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportField {
    /// Its text.
    pub text: String,
    /// Letters and digits of its name in lower case, without a unit.
    pub key: String,
    /// The unit behind its name or below it.
    pub unit: Option<String>,
    /// True if cells of it are times, which are seconds in a column of numbers, regardless of the unit.
    pub holds_times: bool,
}

impl ImportField {
    /// The unit of its values, unless they are times: those have a check of their own.
    pub(super) fn unit_of_numbers(&self) -> Option<&str> {
        self.unit.as_deref().filter(|_| !self.holds_times)
    }
}

/// The column of each field of a file's header, if it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportColumns {
    /// Names of the header's fields.
    pub(super) header: Vec<String>,
    /// Their columns.
    pub(super) columns: Vec<Option<ColumnRef>>,
    /// Lookups of the references among them.
    pub(super) lookups: BTreeMap<String, CellLookup>,
    /// Types of the values that the cells of these references hold.
    lookup_types: HashMap<String, DataType>,
}

impl ImportColumns {
    /// Checks that rows can be imported into a table; `None` if there is none of that name.
    ///
    /// # Errors
    /// The problem of a table that cannot be written.
    pub fn table(catalog: &Catalog, name: &str) -> Result<Option<KeyedTable>, Problem> {
        match writable_table(catalog, name) {
            Ok(table) => Ok(Some(table)),
            Err(_) if is_unknown(catalog, name) => Ok(None),
            Err(message) => Err(Problem::at("table", message)),
        }
    }

    /// Names and texts of all fields that find a column of these tables, or are left out by choice.
    #[must_use]
    pub fn known_fields(
        table: &Table,
        chosen: &BTreeMap<String, Option<String>>,
        linked: &[LinkedTable],
    ) -> Vec<String> {
        let columns = table.columns.iter();
        let names = columns.flat_map(|column| [column.name.clone(), column.sql_name().into()]);
        let system = table.system_columns().iter();
        let system = system.map(|column| column.name.to_owned());
        let of_linked = linked.iter().flat_map(|it| it.columns.keys()).cloned();
        let chosen = chosen.keys().cloned();
        names.chain(system).chain(of_linked).chain(chosen).collect()
    }

    /// Chooses a column for each field: the one that `chosen` names for it, or else the one of the
    /// same name, without regard to case, blanks and punctuation, and to a unit in brackets. A field
    /// whose choice is `None`, and one of a system column, is left out.
    ///
    /// # Errors
    /// A problem at `columns.<field>` for each field without a column, for one of another unit than the column that
    /// was not chosen for it, for fields of one name or for one column, and for choices without a field.
    pub fn choose(
        header: &[ImportField],
        chosen: &BTreeMap<String, Option<String>>,
        table: &Table,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut names: HashMap<&str, usize> = HashMap::new();
        for field in header {
            *names.entry(&field.text).or_default() += 1;
        }
        let mut taken: HashMap<&str, &str> = HashMap::new();
        let mut columns = Vec::with_capacity(header.len());
        let mut reported: HashSet<&str> = HashSet::new();
        for import_field in header {
            let ImportField {
                text: field, key, ..
            } = import_field;
            let name = match chosen.get(field) {
                Some(None) => {
                    columns.push(None);
                    continue;
                }
                Some(Some(name)) => name.as_str(),
                // So that an export can be imported.
                None if SystemColumn::from_name(field).is_some() => {
                    columns.push(None);
                    continue;
                }
                None => field.as_str(),
            };
            // A choice names its column exactly; only headers are compared loosely.
            let alike = || column_alike(table, key).filter(|_| !chosen.contains_key(field));
            let column = table.column(name).or_else(alike);
            let other = column.and_then(|column| taken.insert(&column.name, field));
            // First, because the column of a repeated field is also taken, by its twin.
            let message = if names.get(field.as_str()).is_some_and(|count| *count > 1) {
                Some(repeated_field())
            } else if let (Some(other), Some(column)) = (other, column) {
                Some(taken_column(&column.name, other))
            } else if let Some(column) = column {
                let is_chosen = chosen.contains_key(field);
                other_unit(column, import_field.unit_of_numbers(), CHOOSABLE).filter(|_| !is_chosen)
            } else {
                Some(without_column(table, name))
            };
            if let Some(message) = message
                // A name that the header repeats is one problem.
                && reported.insert(field)
            {
                problems.push(Problem::at(path(field), message));
            }
            columns.push(column.cloned());
        }
        // A misspelled choice would otherwise have no effect.
        let unused = chosen
            .keys()
            .filter(|name| !names.contains_key(name.as_str()));
        problems.extend(unused.map(|name| {
            let message = Reason::new(
                ErrorCode::UnknownColumn,
                "the file has no column of this name in its header",
            );
            Problem::at(path(name), message)
        }));
        if problems.is_empty() {
            let header = header.iter().map(|field| field.text.clone()).collect();
            Ok(Self {
                header,
                columns,
                lookups: BTreeMap::new(),
                lookup_types: HashMap::new(),
            })
        } else {
            Err(Problem::first_of(problems))
        }
    }

    /// Chooses what cells of references hold: the values of the columns that `chosen` names; else the
    /// key or, where the referenced table has exactly one unique text column, that column's value.
    ///
    /// # Errors
    /// A problem at `lookups.<column>` for each choice that is no reference, or names no unique column
    /// of the referenced table.
    pub fn with_lookups(
        mut self,
        chosen: &BTreeMap<String, String>,
        table: &Table,
        catalog: &Catalog,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        for (name, wanted) in chosen {
            if let Err(reason) = self.look_up_by(name, wanted, table, catalog) {
                problems.push(Problem::at(format!("lookups.{}", quoted(name)), reason));
            }
        }
        if !problems.is_empty() {
            return Err(Problem::first_of(problems));
        }
        for (reference, target) in table.references() {
            if !chosen.contains_key(&reference.name)
                && let Some(target) = catalog.keyed_table(target)
                && let Some(column) = only_unique_text(&target)
            {
                self.set_lookup(&reference.name, column, true);
            }
        }
        Ok(self)
    }

    fn look_up_by(
        &mut self,
        name: &str,
        wanted: &str,
        table: &Table,
        catalog: &Catalog,
    ) -> Result<(), Reason> {
        let reference = table
            .column(name)
            .ok_or_else(|| unknown_column(table, name))?;
        let target = reference.references.as_deref();
        let target = target.and_then(|target| catalog.keyed_table(target));
        let target = target.ok_or_else(|| {
            Reason::new(
                ErrorCode::InvalidLookup,
                format!("column \"{name}\" is no reference, so its cells are its values"),
            )
        })?;
        let column = target
            .column(wanted)
            .ok_or_else(|| unknown_column(&target, wanted))?;
        if !(column.is_unique || column.is_primary_key) || !column.data_type.can_be_key() {
            return Err(Reason::new(
                ErrorCode::InvalidLookup,
                format!(
                    "column \"{wanted}\" of \"{}\" is no unique text, number or UUID, by which a row \
                     can be found",
                    target.name
                ),
            ));
        }
        // A key needs no lookup.
        if !column.is_primary_key {
            self.set_lookup(name, column, false);
        }
        Ok(())
    }

    fn set_lookup(&mut self, reference: &str, column: &ColumnRef, takes_key: bool) {
        let lookup = CellLookup {
            column: column.name.clone(),
            takes_key,
        };
        self.lookups.insert(reference.to_owned(), lookup);
        self.lookup_types
            .insert(reference.to_owned(), column.data_type);
    }

    /// Returns the type of the cells of each field, if it has a column.
    #[must_use]
    pub fn types(&self) -> Vec<Option<DataType>> {
        let columns = self.columns.iter();
        columns
            .map(|column| {
                let column = column.as_ref()?;
                let looked_up = self.lookup_types.get(&column.name).copied();
                Some(looked_up.unwrap_or(column.data_type))
            })
            .collect()
    }

    /// Fields that have a column, with its name.
    pub fn chosen(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.header.iter().zip(&self.columns);
        pairs.filter_map(|(field, column)| Some((field.as_str(), column.as_ref()?.name.as_str())))
    }
}

fn repeated_field() -> Reason {
    Reason::new(
        ErrorCode::DuplicateColumn,
        "the file has several columns of this name; rename all but one, or choose null for it to leave all of them out",
    )
}

fn taken_column(column: &str, other: &str) -> Reason {
    Reason::new(
        ErrorCode::DuplicateColumn,
        format!(
            "column \"{column}\" is also the column for \"{}\"",
            quoted(other)
        ),
    )
}

fn without_column(table: &Table, name: &str) -> Reason {
    let Reason { code, message } = unknown_column(table, name);
    let advice = "choose a column for it in \"columns\", or null to leave it out";
    Reason::new(code, format!("{message}; {advice}"))
}

/// Returns the only unique text column of a table besides its key.
pub(super) fn only_unique_text(table: &Table) -> Option<&ColumnRef> {
    let mut unique = table.columns.iter().filter(|column| {
        column.is_unique
            && !column.is_primary_key
            && matches!(column.data_type, DataType::String | DataType::Text)
            && column.references.is_none()
    });
    let found = unique.next()?;
    unique.next().is_none().then_some(found)
}

/// Returns the only column whose name, in writes or in SQL, is like a header.
fn column_alike<'t>(table: &'t Table, key: &str) -> Option<&'t ColumnRef> {
    // Keys have letters and digits only.
    let is_alike = |name: &str| !key.is_empty() && name.replace('_', "") == key;
    let mut alike = table
        .columns
        .iter()
        .filter(|column| is_alike(&column.name) || is_alike(&column.sql_name()));
    let found = alike.next()?;
    alike.next().is_none().then_some(found)
}

fn is_unknown(catalog: &Catalog, name: &str) -> bool {
    catalog.table(name).is_none() && PlatformTable::from_name(name).is_none()
}

pub(super) fn path(field: &str) -> String {
    format!("columns.{}", quoted(field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::{CatalogVersion, core_tables},
        data::{
            import::{ImportMode, ImportRows, ImportWrite, MAX_IMPORT_TEXT},
            write::{FileCell, OnMatch},
        },
    };

    fn carrier() -> Table {
        let mut tables = core_tables().into_iter();
        tables.find(|table| table.name == "carrier").unwrap()
    }

    fn choose(
        header: &[&str],
        chosen: &[(&str, Option<&str>)],
    ) -> Result<ImportColumns, Vec<(String, String)>> {
        let header: Vec<ImportField> = header
            .iter()
            .map(|text| ImportField {
                text: (*text).to_owned(),
                key: text.to_lowercase().replace([' ', '_', '.'], ""),
                unit: None,
                holds_times: false,
            })
            .collect();
        let chosen = chosen.iter();
        let chosen = chosen.map(|(field, column)| ((*field).to_owned(), column.map(str::to_owned)));
        let columns = ImportColumns::choose(&header, &chosen.collect(), &carrier());
        columns.map_err(|problems| {
            let problems = problems.into_iter();
            let pairs = problems.map(|problem| (problem.path.unwrap(), problem.message));
            pairs.collect()
        })
    }

    fn paths(refused: Result<ImportColumns, Vec<(String, String)>>) -> Vec<String> {
        refused
            .unwrap_err()
            .into_iter()
            .map(|(path, _)| path)
            .collect()
    }

    #[test]
    fn a_field_is_for_the_column_of_its_name_or_the_chosen_one() {
        let choices = [("Type", Some("carrier_type")), ("Remark", None)];
        let columns = choose(&["name", "Type", "Remark"], &choices).unwrap();
        let string = Some(DataType::String);
        assert_eq!(columns.types(), [string, string, None]);
        let chosen: Vec<_> = columns.chosen().collect();
        assert_eq!(chosen, [("name", "name"), ("Type", "carrier_type")]);
        let column = columns.columns[1].as_ref().unwrap();
        assert_eq!(column.data_type, DataType::String);
    }

    #[test]
    fn a_field_finds_its_column_without_regard_to_case_and_punctuation() {
        let columns = choose(&["Name", "Carrier type"], &[]).unwrap();
        let chosen: Vec<_> = columns.chosen().collect();
        assert_eq!(chosen, [("Name", "name"), ("Carrier type", "carrier_type")]);
        let twice = choose(&["name", "NAME"], &[]);
        assert_eq!(paths(twice), ["columns.NAME"]);
    }

    #[test]
    fn a_field_of_another_unit_is_a_problem_unless_its_column_is_chosen() {
        let mut table = carrier();
        table
            .columns
            .update(|column| column.unit = Some("uL".to_owned()));
        let choose = |unit: Option<&str>, chosen: Option<&str>| {
            let field = ImportField {
                text: "Name".to_owned(),
                key: "name".to_owned(),
                unit: unit.map(str::to_owned),
                holds_times: false,
            };
            let chosen = chosen.map(|column| ("Name".to_owned(), Some(column.to_owned())));
            ImportColumns::choose(&[field], &chosen.into_iter().collect(), &table)
        };
        for unit in ["\u{b5}l", "uL", "as measured", "Sample 1"]
            .map(Some)
            .into_iter()
            .chain([None])
        {
            assert!(choose(unit, None).is_ok(), "{unit:?}");
        }
        for (unit, words) in [
            ("mL", "are in mL"),
            ("ml", "are in ml"),
            ("Min.", "are in Min."),
            ("10\u{b3} \u{b5}l", "are in 10\u{b3} \u{b5}l"),
            ("Torr", "\"Torr\" in the header may be a unit"),
        ] {
            let problems = choose(Some(unit), None).unwrap_err();
            assert_eq!(problems[0].path.as_deref(), Some("columns.Name"));
            assert!(problems[0].message.contains(words), "{problems:?}");
            assert!(choose(Some(unit), Some("name")).is_ok());
        }
    }

    #[test]
    fn system_columns_of_an_export_are_left_out() {
        let columns = choose(&["name", "created_at", "updated_at"], &[]).unwrap();
        assert_eq!(columns.types(), [Some(DataType::String), None, None]);
    }

    #[test]
    fn a_field_without_a_column_is_a_problem() {
        let refused = choose(
            &["name", "Nickname", "created_at"],
            &[("name", Some("nothing"))],
        );
        let refused = refused.unwrap_err();
        assert_eq!(refused[0].0, "columns.name");
        assert_eq!(
            refused[1].1,
            "\"carrier\" has no column \"Nickname\"; choose a column for it in \"columns\", or null to leave it out"
        );
        assert_eq!(refused.len(), 2);
    }

    #[test]
    fn fields_that_are_not_distinct_are_a_problem() {
        let same_name = choose(&["name", "barcode", "barcode"], &[]);
        assert_eq!(paths(same_name), ["columns.barcode"]);
        let left_out = choose(&["name", "barcode", "barcode"], &[("barcode", None)]);
        let types = left_out.unwrap().types();
        assert_eq!(types, [Some(DataType::String), None, None]);
        let same_column = choose(&["name", "Label"], &[("Label", Some("name"))]);
        assert_eq!(paths(same_column), ["columns.Label"]);
        let unused = choose(&["name"], &[("Name", Some("name"))]);
        assert_eq!(paths(unused), ["columns.Name"]);
    }

    #[test]
    fn texts_have_a_limit_in_total() {
        let write = ImportWrite {
            table: "carrier".to_owned(),
            mode: ImportMode::Insert,
            key: None,
            on_match: OnMatch::default(),
            blank: None,
            dry_run: false,
        };
        let mut rows = ImportRows::new(choose(&["name"], &[]).unwrap(), write);
        let mut add = |line| {
            let text = FileCell::Text("x".repeat(MAX_IMPORT_TEXT / 2));
            rows.add(line, &mut [Some(text)])
        };
        assert_eq!((add(2), add(3)), (Ok(()), Ok(())));
        let refused = add(4).unwrap_err();
        assert!(refused.message.contains("128 MiB of text"), "{refused:?}");
    }

    #[test]
    fn rows_are_imported_into_tables_of_rows_only() {
        let catalog = Catalog::new(CatalogVersion(1), Vec::new());
        assert!(ImportColumns::table(&catalog, "carrier").unwrap().is_some());
        assert_eq!(ImportColumns::table(&catalog, "nothing"), Ok(None));
        let refused = ImportColumns::table(&catalog, "job").unwrap_err();
        assert_eq!(refused.path.as_deref(), Some("table"));
        assert!(refused.message.contains("read only"));
    }
}
