//! Reads pages of rows.

use std::pin::pin;

use diesel::sql_types::Uuid as SqlUuid;
use diesel_async::RunQueryDsl;
use futures::TryStreamExt;
use labdata_domain::{
    catalog::{PlatformTable, SYSTEM_COLUMNS, Table},
    data::read::{Condition, Position, ReadPlan, ReadTarget, RowJson, RowPage, Test},
    ids::OrganizationId,
    scalar::{DataType, KeyValue, Scalar, Values},
};

use serde_json::{Map, Value};

use super::read_row::{Rendered, position_columns};
use crate::{
    catalog::ddl::{point_expression, points_from},
    database::{
        pool::Connection,
        sql::{
            Schemas, bind_scalar, bind_values, ident, key_from_text, primary_key, sql_type,
            statement,
        },
    },
};

enum Bound {
    Scalar(Scalar),
    Values(Values),
    Organization,
}

struct Query {
    text: String,
    bound: Vec<Bound>,
}

impl Query {
    fn parameter(&mut self, bound: Bound) -> String {
        self.bound.push(bound);
        format!("${}", self.bound.len())
    }
}

pub(crate) async fn read(
    connection: &mut Connection,
    organization: OrganizationId,
    plan: &ReadPlan,
) -> Result<RowPage, diesel::result::Error> {
    let schemas = Schemas::of(organization);
    let query = match &plan.target {
        ReadTarget::Table(table) if table.is_raw() => points_query(&schemas, table, plan),
        ReadTarget::Table(table) => rows_query(&schemas, table, plan),
        ReadTarget::Platform(table) => platform_query(*table, plan),
    };
    let mut prepared = statement(query.text);
    for bound in &query.bound {
        prepared = match bound {
            Bound::Scalar(scalar) => bind_scalar(prepared, scalar),
            Bound::Values(values) => bind_values(prepared, values),
            Bound::Organization => prepared.bind::<SqlUuid, _>(organization.as_uuid()),
        };
    }
    connection.begin_rows();
    let mut found = Vec::new();
    let (is_full, is_whole) = {
        let mut stream = pin!(prepared.load_stream::<Rendered>(connection).await?);
        let (mut bytes, mut is_full) = (0, false);
        while let Some(row) = stream.try_next().await? {
            is_full = plan.is_full(found.len(), bytes);
            if is_full {
                break;
            }
            bytes += row.json.len();
            found.push(row);
        }
        // The row over the limit is the statement's last one.
        (is_full, !is_full || stream.try_next().await?.is_none())
    };
    if is_whole {
        connection.end_rows();
    }
    let next = if is_full {
        found.last().and_then(|last| position(&plan.target, last))
    } else {
        None
    };
    Ok(RowPage {
        rows: found
            .into_iter()
            .map(|found| RowJson::from_rendered(found.json))
            .collect(),
        next,
    })
}

fn position(target: &ReadTarget, last: &Rendered) -> Option<Position> {
    let (name, key_type) = match target {
        ReadTarget::Table(table) if table.is_raw() => {
            return Some(Position::Point {
                chunk: last.chunk?,
                place: last.place?,
            });
        }
        ReadTarget::Table(table) => {
            let (_, key) = table.primary_key()?;
            (key.name.as_str(), key.data_type)
        }
        ReadTarget::Platform(table) => {
            let key = table.columns().first()?;
            (key.name, key.data_type)
        }
    };
    let row: Map<String, Value> = serde_json::from_str(&last.json).ok()?;
    let key = match row.get(name)? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(Position::Key(key_from_text(key, key_type)))
}

fn key_scalar(key: &KeyValue) -> Scalar {
    key.clone().into()
}

/// An item of a select list: a value under its name in reads.
fn selected(expression: &str, name: &str) -> String {
    format!("{expression} AS {}", ident(name))
}

fn rows_query(schemas: &Schemas, table: &Table, plan: &ReadPlan) -> Query {
    let mut query = Query {
        text: String::new(),
        bound: Vec::new(),
    };
    let key = primary_key(table);
    let mut conditions = conditions(&mut query, schemas, plan, |sql_name| {
        format!("t.{}", ident(sql_name))
    });
    if let Some(Position::Key(after)) = &plan.after {
        let parameter = query.parameter(Bound::Scalar(key_scalar(after)));
        conditions.push(format!("t.{key} < {parameter}"));
    }
    let own = table.columns.iter();
    let own = own.map(|column| selected(&format!("t.{}", ident(&column.sql_name())), &column.name));
    let system = SYSTEM_COLUMNS.iter();
    let system = system.map(|(name, _)| selected(&format!("t.{}", ident(name)), name));
    let columns: Vec<String> = own.chain(system).collect();
    query.text = format!(
        "SELECT {position}, {columns} FROM {from} t{filter} ORDER BY t.{key} DESC LIMIT {limit}",
        position = position_columns(false),
        from = schemas.table(&table.name),
        columns = columns.join(", "),
        filter = filter(&conditions),
        limit = u64::from(plan.limit) + 1,
    );
    query
}

fn points_query(schemas: &Schemas, table: &Table, plan: &ReadPlan) -> Query {
    let mut query = Query {
        text: String::new(),
        bound: Vec::new(),
    };
    let mut conditions = conditions(&mut query, schemas, plan, |sql_name| {
        point_expression(table, sql_name)
    });
    if let Some(Position::Point { chunk, place }) = plan.after {
        let chunk = query.parameter(Bound::Scalar(Scalar::Integer(chunk)));
        let place = query.parameter(Bound::Scalar(Scalar::Integer(place)));
        conditions.push(format!(
            "(c._chunk > {chunk} OR (c._chunk = {chunk} AND p._place > {place}))"
        ));
    }
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| selected(&point_expression(table, &column.sql_name()), &column.name))
        .collect();
    query.text = format!(
        "SELECT {position}, {columns} FROM {from}{filter} ORDER BY c._chunk, p._place LIMIT {limit}",
        position = position_columns(true),
        from = points_from(schemas, table),
        columns = columns.join(", "),
        filter = filter(&conditions),
        limit = u64::from(plan.limit) + 1,
    );
    query
}

fn platform_query(table: PlatformTable, plan: &ReadPlan) -> Query {
    let mut query = Query {
        text: String::new(),
        bound: Vec::new(),
    };
    let organization = query.parameter(Bound::Organization);
    let source = platform_source(table, &organization);
    let schemas = Schemas::of(OrganizationId::new(uuid::Uuid::nil()));
    let mut conditions = conditions(&mut query, &schemas, plan, |sql_name| {
        format!("t.{}", ident(sql_name))
    });
    if let Some(Position::Key(after)) = &plan.after {
        let parameter = query.parameter(Bound::Scalar(key_scalar(after)));
        conditions.push(format!("t.id < {parameter}"));
    }
    let columns: Vec<String> = table
        .columns()
        .iter()
        .map(|column| selected(&format!("t.{}", ident(column.name)), column.name))
        .collect();
    query.text = format!(
        "SELECT {position}, {columns} FROM ({source}) t{filter} ORDER BY t.id DESC LIMIT {limit}",
        position = position_columns(false),
        columns = columns.join(", "),
        filter = filter(&conditions),
        limit = u64::from(plan.limit) + 1,
    );
    query
}

/// A platform table's rows of one organization, with exactly the columns that are readable.
pub(crate) fn platform_source(table: PlatformTable, organization: &str) -> String {
    let source = match table {
        PlatformTable::Table => "SELECT id, name, semantic_category FROM labdata.catalog_table",
        PlatformTable::Job => "SELECT id, name, description, archived, created_at FROM labdata.job",
        PlatformTable::JobExecution => {
            return format!(
                "SELECT e.id, e.job_id, j.name AS job_name, e.status, e.started_at, e.completed_at, e.created_at \
                 FROM labdata.job_execution e JOIN labdata.job j ON j.id = e.job_id WHERE e.organization_id = {organization}"
            );
        }
        PlatformTable::File => {
            return format!(
                "SELECT id, file_name, original_path, content_type, source_type, instrument_id AS source_instrument_id, \
                 job_execution_id, ceil(size_bytes / 1024.0)::bigint AS size_kilobytes, crc32c AS crc32c_hash, uploaded_at \
                 FROM labdata.file WHERE organization_id = {organization} AND status = 'confirmed'"
            );
        }
        PlatformTable::Instrument => {
            "SELECT id, name, description, instrument_type, created_at FROM labdata.instrument"
        }
        PlatformTable::OrganizationMember => "SELECT id, email, name FROM labdata.app_user",
        PlatformTable::Dataset => {
            "SELECT id, name, description, row_count, created_at FROM labdata.dataset"
        }
        PlatformTable::MlModel => {
            return format!(
                "SELECT m.id, m.name, v.task_type, v.problem_type, v.target_column, v.dataset_id, m.version_number, \
                 m.active_version_number, v.status, m.archived, m.created_at \
                 FROM labdata.ml_model m JOIN labdata.ml_model_version v ON v.organization_id = m.organization_id \
                 AND v.model_id = m.id AND v.version_number = m.version_number WHERE m.organization_id = {organization}"
            );
        }
    };
    format!("{source} WHERE organization_id = {organization}")
}

fn filter(conditions: &[String]) -> String {
    if conditions.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", conditions.join(" AND "))
    }
}

fn conditions(
    query: &mut Query,
    schemas: &Schemas,
    plan: &ReadPlan,
    column: impl Fn(&str) -> String,
) -> Vec<String> {
    plan.conditions
        .iter()
        .map(|condition| condition_sql(query, schemas, condition, &column))
        .collect()
}

/// A condition that follows references becomes a chain of `IN (SELECT …)`, which uses indexes.
fn condition_sql(
    query: &mut Query,
    schemas: &Schemas,
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
        inner = format!(
            "{outer} IN (SELECT h{depth}.{key} FROM {table} h{depth} WHERE {inner})",
            key = primary_key(&hop.table),
            table = schemas.table(&hop.table.name),
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
            let parameter = query.parameter(Bound::Values(values.clone()));
            format!("{expression} = ANY({parameter}::{}[])", sql_type(data_type))
        }
        Test::IsNull(true) => format!("{expression} IS NULL"),
        Test::IsNull(false) => format!("{expression} IS NOT NULL"),
        Test::Contains(part) => {
            let escaped = part
                .replace('\\', "\\\\")
                .replace('%', "\\%")
                .replace('_', "\\_");
            let parameter = query.parameter(Bound::Scalar(Scalar::Text(format!("%{escaped}%"))));
            format!("{expression} ILIKE {parameter}")
        }
    }
}
