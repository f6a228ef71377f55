//! Conditions of reads in SQL, with their parameters.

use diesel::sql_types::Uuid as SqlUuid;
use labdata_domain::{
    data::read::{Condition, Test},
    ids::OrganizationId,
    scalar::{DataType, Scalar, Values},
};

use super::as_of::{AsOf, rows_of};
use crate::database::sql::{
    Schemas, Statement, bind_scalar, bind_values, ident, sql_type, statement,
};

/// Value of a parameter.
pub(super) enum Bound {
    Scalar(Scalar),
    Values(Values),
    Organization,
}

/// A statement with its parameters.
#[derive(Default)]
pub(super) struct Query {
    pub(super) text: String,
    bound: Vec<Bound>,
}

impl Query {
    /// Adds a parameter; returns its placeholder.
    pub(super) fn parameter(&mut self, bound: Bound) -> String {
        self.bound.push(bound);
        format!("${}", self.bound.len())
    }

    /// The statement, to be run for that organization.
    pub(super) fn prepared(&self, organization: OrganizationId) -> Statement<'_> {
        let mut prepared = statement(self.text.clone());
        for bound in &self.bound {
            prepared = match bound {
                Bound::Scalar(scalar) => bind_scalar(prepared, scalar),
                Bound::Values(values) => bind_values(prepared, values),
                Bound::Organization => prepared.bind::<SqlUuid, _>(organization.as_uuid()),
            };
        }
        prepared
    }
}

/// The WHERE clause of conditions, which may be none.
pub(super) fn filter(conditions: &[String]) -> String {
    if conditions.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", conditions.join(" AND "))
    }
}

/// Conditions in SQL; `column` makes the expression of a column of the rows. Referenced rows are as they stood, too.
pub(super) fn conditions(
    query: &mut Query,
    schemas: &Schemas,
    as_of: Option<&AsOf>,
    conditions: &[Condition],
    column: impl Fn(&str) -> String,
) -> Vec<String> {
    conditions
        .iter()
        .map(|condition| condition_sql(query, schemas, as_of, condition, &column))
        .collect()
}

/// A condition that follows references becomes a chain of `IN (SELECT …)`, which uses indexes.
fn condition_sql(
    query: &mut Query,
    schemas: &Schemas,
    as_of: Option<&AsOf>,
    condition: &Condition,
    column: &impl Fn(&str) -> String,
) -> String {
    let Some(last) = condition.hops.len().checked_sub(1) else {
        return test_sql(
            query,
            &column(&condition.field.sql_name),
            condition.field.data_type,
            &condition.test,
        );
    };
    let field = format!("h{last}.{}", ident(&condition.field.sql_name));
    let mut inner = test_sql(query, &field, condition.field.data_type, &condition.test);
    for (depth, hop) in condition.hops.iter().enumerate().rev() {
        let outer = if depth == 0 {
            column(&hop.sql_column)
        } else {
            format!("h{}.{}", depth - 1, ident(&hop.sql_column))
        };
        let names = schemas.names(&hop.table);
        inner = format!(
            "{outer} IN (SELECT h{depth}.{key} FROM {table} h{depth} WHERE {inner})",
            key = names.key,
            table = rows_of(as_of, schemas, &hop.table),
        );
    }
    inner
}

fn test_sql(query: &mut Query, expression: &str, data_type: DataType, test: &Test) -> String {
    let mut compare = |operator: &str, scalar: &Scalar| {
        let parameter = query.parameter(Bound::Scalar(scalar.clone()));
        format!("{expression} {operator} {parameter}")
    };
    match test {
        Test::Equals(scalar) => compare("=", scalar),
        Test::Greater(scalar) => compare(">", scalar),
        Test::GreaterOrEqual(scalar) => compare(">=", scalar),
        Test::Less(scalar) => compare("<", scalar),
        Test::LessOrEqual(scalar) => compare("<=", scalar),
        Test::In(values) => {
            // One parameter for all values: IN would need one each, and another text for each number.
            let parameter = query.parameter(Bound::Values(values.clone()));
            format!("{expression} = ANY({parameter}::{}[])", sql_type(data_type))
        }
        Test::IsNull(true) => format!("{expression} IS NULL"),
        Test::IsNull(false) => format!("{expression} IS NOT NULL"),
        Test::Contains(part) => {
            // ILIKE has wildcards and an escape character; the part is meant literally.
            let escaped = part
                .replace('\\', "\\\\")
                .replace('%', "\\%")
                .replace('_', "\\_");
            let parameter = query.parameter(Bound::Scalar(Scalar::Text(format!("%{escaped}%"))));
            format!("{expression} ILIKE {parameter}")
        }
    }
}
