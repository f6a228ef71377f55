//! Units of the columns for which the fields of a file are read.

use super::{ImportColumns, ImportField, LinkedColumns, columns::path};
use crate::{
    catalog::{ColumnRef, UnitMatch, compare_unit, ucum_of, unit_besides_seconds},
    data::write::{Problem, Reason, quoted},
    refusal::ErrorCode,
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
    /// corrects a header and no cells. Seconds are also the unit of a column without one, unless its name or the
    /// header names another.
    ///
    /// # Errors
    /// A problem at `columns.<field>` for each field with times and a column of numbers in another unit.
    pub fn check_times(
        &self,
        linked: &[LinkedColumns],
        fields: &[ImportField],
    ) -> Result<(), Vec<Problem>> {
        let fields = fields.iter().enumerate();
        let problems: Vec<Problem> = fields
            .filter(|(_, field)| field.holds_times)
            .filter_map(|(index, field)| {
                let mut columns = self.targets(linked, index);
                let reason = columns.find_map(|column| times_in_other_unit(column, field))?;
                Some(Problem::at(path(&field.text), reason))
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

impl LinkedColumns {
    /// Checks that columns of several tables which take the same field have one unit: a cell is one number, which is
    /// wrong in one of two units.
    ///
    /// # Errors
    /// A problem at `linked[<index>].columns.<field>` for each column in another unit than one of a table before it.
    pub fn check_units(
        linked: &[Self],
        own: &ImportColumns,
        fields: &[ImportField],
    ) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        for (index, table) in linked.iter().enumerate() {
            let others = linked.get(..index).unwrap_or_default();
            for (position, (field, column)) in fields.iter().zip(&table.columns.columns).enumerate()
            {
                let Some(column) = column else { continue };
                let mut others = own.targets(others, position);
                if let Some(other) = others.find(|other| !have_one_unit(column, other, field)) {
                    let path = format!("linked[{index}].{}", path(&field.text));
                    problems.push(Problem::at(path, two_units(column, other)));
                }
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Problem::first_of(problems))
        }
    }
}

/// Returns whether the values of a field are the same numbers in both columns.
fn have_one_unit(one: &ColumnRef, other: &ColumnRef, field: &ImportField) -> bool {
    if !one.data_type.is_number() || !other.data_type.is_number() {
        return true;
    }
    match (one.unit.as_deref(), other.unit.as_deref()) {
        (Some(one), Some(other)) => {
            let is_same = |text: &str, code: &str| compare_unit(text, code) == UnitMatch::Same;
            is_same(one, other) || is_same(other, one)
        }
        // A workbook's 50% is 50 in a column of percentages, and 0.5 where neither column nor header names them.
        (Some(unit), None) | (None, Some(unit)) => {
            let is_percent = |unit: &str| ucum_of(unit).as_deref() == Some("%");
            !is_percent(unit) || field.unit.as_deref().is_some_and(is_percent)
        }
        (None, None) => true,
    }
}

fn two_units(column: &ColumnRef, other: &ColumnRef) -> Reason {
    let unit = |column: &ColumnRef| match &column.unit {
        Some(unit) => format!("are in {unit}"),
        None => "have no unit".to_owned(),
    };
    let message = format!(
        "the values of column \"{}\" {}, but those of column \"{}\", which takes this field as well, {}; give each a \
         field of its own, in its unit",
        column.name,
        unit(column),
        other.name,
        unit(other)
    );
    Reason::new(ErrorCode::DoubtfulReading, message)
}

fn times_in_other_unit(column: &ColumnRef, field: &ImportField) -> Option<Reason> {
    if !column.data_type.is_number() {
        return None;
    }
    let name = &column.name;
    let message = if let Some(unit) = column.unit.as_deref() {
        if ucum_of(unit).as_deref() == Some("s") {
            return None;
        }
        format!(
            "cells of the file are times, which are read as values in s, but those of column \"{name}\" are in {unit}; \
             enter them as numbers in {unit}"
        )
    } else {
        let of_header = unit_besides_seconds(&field.text, field.unit.as_deref());
        let unit = quoted(of_header.or_else(|| unit_besides_seconds(name, None))?);
        format!(
            "cells of the file are times, which are read as values in s, but \"{unit}\" in the header or the name of \
             column \"{name}\", which has no unit, is another unit; give the column the unit s, or enter the cells as \
             numbers"
        )
    };
    Some(Reason::new(ErrorCode::DoubtfulReading, message))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{catalog::core_tables, scalar::DataType};

    fn field(text: &str, unit: Option<&str>) -> ImportField {
        ImportField {
            text: text.to_owned(),
            key: "time".to_owned(),
            unit: unit.map(str::to_owned),
            holds_times: true,
        }
    }

    /// The columns for a field whose column has this name, type and unit.
    fn columns_named(
        name: &str,
        field: &ImportField,
        data_type: DataType,
        unit: Option<&str>,
    ) -> ImportColumns {
        let mut tables = core_tables().into_iter();
        let mut table = tables.find(|table| table.name == "carrier").unwrap();
        table.columns.update(|column| {
            column.unit = unit.map(str::to_owned);
            column.data_type = data_type;
            if column.name == "name" {
                name.clone_into(&mut column.name);
            }
        });
        // Chosen, so that no other check of units holds.
        let chosen = BTreeMap::from([(field.text.clone(), Some(name.to_owned()))]);
        ImportColumns::choose(std::slice::from_ref(field), &chosen, &table).unwrap()
    }

    fn columns(field: &ImportField, data_type: DataType, unit: Option<&str>) -> ImportColumns {
        columns_named("name", field, data_type, unit)
    }

    #[test]
    fn times_are_read_for_columns_of_seconds_and_texts() {
        for (data_type, unit, is_read) in [
            (DataType::Float, Some("s"), true),
            (DataType::Text, Some("h"), true),
            (DataType::Text, None, true),
            (DataType::Float, Some("h"), false),
            (DataType::Integer, Some("ms"), false),
            (DataType::Float, Some("{cycles}"), false),
        ] {
            let field = field("Time (h)", Some("h"));
            let columns = columns(&field, data_type, unit);
            assert_eq!(columns.units(&[]), [unit.map(str::to_owned)]);
            let numbers = ImportField {
                holds_times: false,
                ..field.clone()
            };
            assert!(columns.check_times(&[], &[numbers]).is_ok());
            let checked = columns.check_times(&[], &[field]);
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

    #[test]
    fn a_column_without_a_unit_takes_times_unless_something_names_another_unit() {
        for (header, unit, is_read) in [
            ("t", None, true),
            ("t (s)", Some("s"), true),
            ("t (raw)", Some("raw"), true),
            ("t (hh:mm:ss)", Some("hh:mm:ss"), true),
            ("t (min)", Some("min"), false),
            // From a line of units.
            ("t", Some("h"), false),
            ("t (mni)", Some("mni"), false),
            ("time_min", None, false),
            ("Time/h", None, false),
        ] {
            for data_type in [DataType::Float, DataType::Integer] {
                let field = field(header, unit);
                let checked = columns(&field, data_type, None).check_times(&[], &[field]);
                assert_eq!(checked.is_ok(), is_read, "{header} {unit:?}");
            }
        }
        let field = field("t", None);
        let columns = columns_named("time_min", &field, DataType::Float, None);
        let problem = columns.check_times(&[], &[field]).unwrap_err().remove(0);
        assert!(problem.message.contains("\"min\""), "{}", problem.message);
    }
}
