//! Units of the columns for which the fields of a file are read.

use super::{ImportColumns, LinkedColumns};
use crate::{
    catalog::{ColumnRef, ucum_of},
    data::write::{Problem, Reason, quoted},
    refusal::ErrorCode,
    scalar::DataType,
};

impl ImportColumns {
    /// Units of the columns of each field: of the import's own, or of a linked table.
    #[must_use]
    pub fn units(&self, linked: &[LinkedColumns]) -> Vec<Option<String>> {
        let fields = 0..self.columns.len();
        fields
            .map(|field| self.targets(linked, field).find_map(|it| it.unit.clone()))
            .collect()
    }

    /// Checks that times are read for columns of seconds only: as numbers they are seconds, so that ten minutes in
    /// a column of minutes would be 600. This holds for fields whose column was chosen as well, because a choice
    /// corrects a header and no cells.
    ///
    /// # Errors
    /// A problem at `columns.<field>` for each field of `holds_times` with a column of numbers in another unit.
    pub fn check_times(
        &self,
        linked: &[LinkedColumns],
        holds_times: &[bool],
    ) -> Result<(), Vec<Problem>> {
        let fields = self.header.iter().zip(holds_times).enumerate();
        let problems: Vec<Problem> = fields
            .filter(|(_, (_, holds_times))| **holds_times)
            .filter_map(|(index, (field, _))| {
                let reason = self.targets(linked, index).find_map(times_in_other_unit)?;
                Some(Problem::at(format!("columns.{}", quoted(field)), reason))
            })
            .collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Problem::first_of(problems))
        }
    }

    /// The columns of a field.
    fn targets<'c>(
        &'c self,
        linked: &'c [LinkedColumns],
        field: usize,
    ) -> impl Iterator<Item = &'c ColumnRef> {
        let tables = std::iter::once(self).chain(linked.iter().map(|it| &it.columns));
        tables.filter_map(move |table| table.columns.get(field)?.as_ref())
    }
}

fn times_in_other_unit(column: &ColumnRef) -> Option<Reason> {
    let unit = column.unit.as_deref()?;
    let is_number = matches!(column.data_type, DataType::Integer | DataType::Float);
    if !is_number || ucum_of(unit).as_deref() == Some("s") {
        return None;
    }
    let message = format!(
        "cells of the file are times, which are read as values in s, but those of column \"{}\" are in {unit}; enter them as \
         numbers in {unit}",
        column.name
    );
    Some(Reason::new(ErrorCode::DoubtfulReading, message))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{super::ImportField, *};
    use crate::catalog::core_tables;

    fn columns(data_type: DataType, unit: Option<&str>) -> ImportColumns {
        let mut tables = core_tables().into_iter();
        let mut table = tables.find(|table| table.name == "carrier").unwrap();
        table.columns.update(|column| {
            column.unit = unit.map(str::to_owned);
            column.data_type = data_type;
        });
        let field = ImportField {
            text: "Time (h)".to_owned(),
            key: "time".to_owned(),
            unit: None,
        };
        // Chosen, so that no other check of units holds.
        let chosen = BTreeMap::from([("Time (h)".to_owned(), Some("name".to_owned()))]);
        ImportColumns::choose(&[field], &chosen, &table).unwrap()
    }

    #[test]
    fn times_are_read_for_columns_of_seconds_and_texts() {
        for (data_type, unit, is_read) in [
            (DataType::Float, Some("s"), true),
            (DataType::Float, None, true),
            (DataType::Text, Some("h"), true),
            (DataType::Float, Some("h"), false),
            (DataType::Integer, Some("ms"), false),
            (DataType::Float, Some("{cycles}"), false),
        ] {
            let columns = columns(data_type, unit);
            assert_eq!(columns.units(&[]), [unit.map(str::to_owned)]);
            assert!(columns.check_times(&[], &[false]).is_ok());
            let checked = columns.check_times(&[], &[true]);
            assert_eq!(checked.is_ok(), is_read, "{data_type:?} {unit:?}");
            for problem in checked.err().unwrap_or_default() {
                assert_eq!(problem.path.as_deref(), Some("columns.Time (h)"));
                assert!(
                    problem
                        .message
                        .contains("times, which are read as values in s")
                );
            }
        }
    }
}
