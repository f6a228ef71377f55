//! Imports of files, from their bytes to the checked request, without a store.

mod readings;
mod round_trips;
mod shown_numbers;

use std::{collections::BTreeMap, io::Cursor};

use labdata_domain::{
    catalog::{Catalog, CatalogVersion, ColumnDefinition, Table, TableDefinition},
    data::{
        import::{ImportMode, ImportWrite},
        write::{OnMatch, Problem, check_up_to},
    },
    scalar::{DataType, Scalar},
};
use labdata_memory::ThreadTableReader;
use labdata_table_formats::read::ReadOptions;

use super::import_table::{ImportTable, read};
use crate::{Error, reading::Reader};

/// Imports a file into a table of these columns; returns a value per row and column, or the problems.
fn import_file(
    bytes: Vec<u8>,
    columns: &[(&str, DataType)],
    options: ReadOptions,
) -> Result<Vec<Vec<Option<Scalar>>>, Vec<Problem>> {
    let definitions = columns
        .iter()
        .map(|(name, data_type)| ColumnDefinition::new(*name, *data_type));
    import_as(bytes, definitions.collect(), BTreeMap::new(), options)
}

/// Imports a file into a table of these columns, of which some are chosen for fields.
fn import_as(
    bytes: Vec<u8>,
    definitions: Vec<ColumnDefinition>,
    chosen: BTreeMap<String, Option<String>>,
    options: ReadOptions,
) -> Result<Vec<Vec<Option<Scalar>>>, Vec<Problem>> {
    let names: Vec<String> = definitions.iter().map(|it| it.name.clone()).collect();
    let definition = TableDefinition::new("thing", definitions);
    let empty = Catalog::new(CatalogVersion(1), Vec::new());
    let target: Table = definition.resolve(&empty).unwrap();
    let catalog = Catalog::new(CatalogVersion(1), vec![target.clone()]);
    let command = ImportTable {
        write: ImportWrite {
            table: "thing".to_owned(),
            mode: ImportMode::Insert,
            key: None,
            on_match: OnMatch::default(),
            blank: None,
            dry_run: true,
        },
        columns: chosen,
        lookups: [].into(),
        linked: Vec::new(),
        options,
        job_execution_id: None,
        job_name: None,
    };
    let source = Box::new(Cursor::new(bytes));
    let (reader, _guard) = Reader::start_with(&ThreadTableReader).unwrap();
    let (request, ..) = match read(reader, source, &target, &catalog, command) {
        Ok(read) => read,
        Err(Error::Problems(problems)) => return Err(problems),
        Err(error) => panic!("{error:?}"),
    };
    let problems = check_up_to(usize::MAX, &request, &catalog).problems();
    if !problems.is_empty() {
        return Err(problems.clone());
    }
    let write = request.tables.first().unwrap();
    let mut rows = vec![Vec::new(); write.rows.len()];
    for name in &names {
        let column = write.rows.column(name).unwrap();
        let values = column.file().unwrap().values();
        for (number, row) in rows.iter_mut().enumerate() {
            row.push(values.get(number));
        }
    }
    Ok(rows)
}
