//! Reads pages of rows.

use std::pin::pin;

use diesel_async::RunQueryDsl;
use futures::TryStreamExt;
use labdata_domain::{
    catalog::{KeyedTable, PlatformTable, Table},
    data::read::{
        Field, OrderTerm, OrderedValue, Position, ReadPlan, ReadTarget, RowJson, RowPage,
        RowPosition,
    },
    ids::OrganizationId,
    scalar::{Scalar, Values},
};

use super::{
    as_of::{AsOf, PastRows, PastValues},
    conditions::{Bound, Query, conditions, filter},
    read_row::{Rendered, STORED, position_column, position_columns},
    row_images::display_stored,
};
use crate::{
    catalog::ddl::{point_expression, points_from},
    database::{
        pool::Connection,
        sql::{Schemas, ident},
    },
};

pub(crate) async fn read(
    connection: &mut Connection,
    organization: OrganizationId,
    plan: &ReadPlan,
) -> Result<RowPage, diesel::result::Error> {
    let schemas = Schemas::of(organization);
    let query = match &plan.target {
        ReadTarget::Table(table) => match KeyedTable::of(table) {
            Some(table) => rows_query(&schemas, &table, plan),
            None => points_query(&schemas, table, plan),
        },
        ReadTarget::Platform(table) => platform_query(*table, plan),
    };
    let prepared = query.prepared(organization);
    // A page may be full by its size before the statement ends; the rest is then cancelled.
    connection.begin_rows();
    let mut found = Vec::new();
    let (is_full, is_whole) = {
        let mut stream = pin!(prepared.load_stream::<Rendered>(connection).await?);
        let (mut bytes, mut is_full) = (0, false);
        while let Some(mut row) = stream.try_next().await? {
            if row.is_stored {
                row.json = displayed(plan, &row.json)?;
            }
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
        found.last().and_then(|last| position(plan, last))
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

/// A stored row as the plan's columns show it.
fn displayed(plan: &ReadPlan, stored: &str) -> Result<String, diesel::result::Error> {
    let columns = plan.columns.iter().map(|displayed| {
        let Field {
            sql_name,
            data_type,
            ..
        } = &displayed.field;
        (displayed.name.as_str(), sql_name.as_str(), *data_type)
    });
    display_stored(columns, stored)
        .map_err(|error| diesel::result::Error::DeserializationError(error.into()))
}

fn position(plan: &ReadPlan, last: &Rendered) -> Option<Position> {
    let mut values = last.position.iter().cloned();
    let row = match &plan.target {
        ReadTarget::Table(table) if table.is_raw() => {
            let (Some(Scalar::Integer(chunk)), Some(Scalar::Integer(place))) =
                (values.next()?, values.next()?)
            else {
                return None;
            };
            RowPosition::Point { chunk, place }
        }
        _ => RowPosition::Key(values.next()??.into_key()?),
    };
    let ordered = plan.order.iter().zip(values);
    let ordered = ordered.map(|(term, value)| OrderedValue {
        term: term.to_text(),
        value,
    });
    Some(Position {
        ordered: ordered.collect(),
        row,
    })
}

/// Parts of a target's statement.
struct Source<'s> {
    /// The FROM clause.
    from: String,
    /// Makes the expression of a column to select.
    column: &'s dyn Fn(&str) -> String,
    /// Makes the expression of a column to compare or order by.
    value: &'s dyn Fn(&str) -> String,
    /// Expressions of the row's own position, each with the direction of the order.
    row: &'s [(&'s str, &'s str)],
    as_of: Option<&'s AsOf>,
    /// A condition besides those of the plan.
    existed: Option<&'s str>,
    /// The row's stored JSON, which is displayed in place of the columns where it is not null.
    stored: Option<&'s str>,
}

fn rows_query(schemas: &Schemas, table: &KeyedTable, plan: &ReadPlan) -> Query {
    let names = schemas.names(table);
    let key = format!("t.{}", names.key);
    let mut begun = Query::default();
    let Some(at) = plan.as_of else {
        let column = |sql_name: &str| format!("t.{}", ident(sql_name));
        let source = Source {
            from: format!("{} t", names.name),
            column: &column,
            value: &column,
            row: &[(&key, "DESC")],
            as_of: None,
            existed: None,
            stored: None,
        };
        begun.text = select(&mut begun, schemas, plan, &source);
        return begun;
    };
    let as_of = AsOf::bind(&mut begun, at);
    let mut part = |rows: PastRows<'_>| {
        let source = Source {
            from: rows.from.clone(),
            column: &|sql_name| rows.column(sql_name),
            value: &|sql_name| rows.value(sql_name),
            row: &[(&rows.key, "DESC")],
            as_of: Some(&as_of),
            existed: Some(&rows.existed),
            stored: rows.json,
        };
        select(&mut begun, schemas, plan, &source)
    };
    // Each part has its own order and limit, so that rows that exist are read along the index of their keys.
    let current = part(as_of.current(&names, PastValues::Json));
    let deleted = part(as_of.deleted(&names, PastValues::Json));
    begun.text = format!(
        "SELECT * FROM (({current}) UNION ALL ({deleted})) u ORDER BY {} LIMIT {}",
        merged_order(plan),
        u64::from(plan.limit) + 1,
    );
    begun
}

/// The order of rows of several parts, by the columns of their positions.
fn merged_order(plan: &ReadPlan) -> String {
    let terms = (1..).zip(&plan.order).map(|(index, term)| {
        let direction = if term.descending { "DESC" } else { "ASC" };
        format!("u.{} {direction}", position_column(index))
    });
    let key = format!("u.{} DESC", position_column(0));
    terms.chain([key]).collect::<Vec<_>>().join(", ")
}

fn points_query(schemas: &Schemas, table: &Table, plan: &ReadPlan) -> Query {
    let mut begun = Query::default();
    let as_of = plan.as_of.map(|at| AsOf::bind(&mut begun, at));
    let chunks = as_of.as_ref().map_or_else(
        || schemas.chunk_table(&table.name),
        |as_of| as_of.chunks(schemas, table),
    );
    let column = |sql_name: &str| point_expression(table, sql_name);
    let source = Source {
        from: points_from(&chunks, table),
        column: &column,
        value: &column,
        row: &[("c._chunk", "ASC"), ("p._place", "ASC")],
        as_of: as_of.as_ref(),
        existed: None,
        stored: None,
    };
    begun.text = select(&mut begun, schemas, plan, &source);
    begun
}

fn platform_query(table: PlatformTable, plan: &ReadPlan) -> Query {
    let mut begun = Query::default();
    let organization = begun.parameter(Bound::Organization);
    let column = |sql_name: &str| format!("t.{}", ident(sql_name));
    let visible = match table {
        PlatformTable::Dataset => plan.visible_tables.identities(),
        _ => None,
    };
    let visible = visible.map(|tables| {
        let tables = tables.into_iter().map(|table| Some(table.into()));
        begun.parameter(Bound::Values(Values::Text(tables.collect())))
    });
    let rows = platform_source(table, &organization, visible.as_deref());
    let source = Source {
        from: format!("({rows}) t"),
        column: &column,
        value: &column,
        row: &[("t.id", "DESC")],
        as_of: None,
        existed: None,
        stored: None,
    };
    let schemas = Schemas::of(OrganizationId::new(uuid::Uuid::nil()));
    begun.text = select(&mut begun, &schemas, plan, &source);
    begun
}

/// The text of a statement that reads a page.
fn select(query: &mut Query, schemas: &Schemas, plan: &ReadPlan, source: &Source<'_>) -> String {
    let (column, value) = (source.column, source.value);
    let mut conditions = conditions(query, schemas, source.as_of, &plan.conditions, value);
    conditions.extend(source.existed.map(str::to_owned));
    let terms: Vec<String> = plan.order.iter().map(|it| term_sql(it, &value)).collect();
    if let Some(after) = &plan.after {
        let places = places(plan, &terms, source, after);
        conditions.push(behind(query, places));
    }
    let position: Vec<String> = source
        .row
        .iter()
        .map(|(expression, _)| (*expression).to_owned())
        .chain(terms.iter().cloned())
        .collect();
    let columns = plan.columns.iter();
    let columns = columns.map(|displayed| {
        format!(
            "{} AS {}",
            column(&displayed.field.sql_name),
            ident(&displayed.name)
        )
    });
    let stored = source.stored.map(|stored| format!("{stored} AS {STORED}"));
    let selected: Vec<String> = std::iter::once(position_columns(&position))
        .chain(stored)
        .chain(columns)
        .collect();
    // Null is greater than every value, which is the default of PostgreSQL.
    let ordered = plan.order.iter().zip(&terms);
    let ordered = ordered.map(|(term, expression)| {
        let direction = if term.descending { "DESC" } else { "ASC" };
        format!("{expression} {direction}")
    });
    let row = source.row.iter();
    let row = row.map(|(expression, direction)| format!("{expression} {direction}"));
    let ordered: Vec<String> = ordered.chain(row).collect();
    format!(
        "SELECT {selected} FROM {from}{filter} ORDER BY {ordered} LIMIT {limit}",
        selected = selected.join(", "),
        from = source.from,
        filter = filter(&conditions),
        ordered = ordered.join(", "),
        // One more than the page: it tells whether another page follows.
        limit = u64::from(plan.limit) + 1,
    )
}

/// The expression that rows are ordered by.
fn term_sql(term: &OrderTerm, column: &impl Fn(&str) -> String) -> String {
    let expression = column(&term.field.sql_name);
    match term.characters() {
        Some(count) => format!("left({expression}, {count}) COLLATE \"C\""),
        None => expression,
    }
}

/// A part of a position: a row is behind it if its value is, or if it is equal and the next part is.
struct Place<'s> {
    expression: &'s str,
    descending: bool,
    is_nullable: bool,
    value: Option<Scalar>,
}

/// The parts of a position, up to one that no two rows share.
fn places<'s>(
    plan: &ReadPlan,
    terms: &'s [String],
    source: &Source<'s>,
    after: &Position,
) -> Vec<Place<'s>> {
    let mut places = Vec::new();
    for ((term, expression), at) in plan.order.iter().zip(terms).zip(&after.ordered) {
        places.push(Place {
            expression,
            descending: term.descending,
            is_nullable: !term.is_key,
            value: at.value.clone(),
        });
        if term.is_key {
            return places;
        }
    }
    let row = match &after.row {
        RowPosition::Key(key) => vec![key.clone().into()],
        RowPosition::Point { chunk, place } => {
            vec![Scalar::Integer(*chunk), Scalar::Integer(*place)]
        }
    };
    let row = source.row.iter().zip(row);
    places.extend(row.map(|((expression, direction), value)| Place {
        expression,
        descending: *direction == "DESC",
        is_nullable: false,
        value: Some(value),
    }));
    places
}

/// The condition that a row is behind a position.
fn behind(query: &mut Query, places: Vec<Place<'_>>) -> String {
    let mut condition: Option<String> = None;
    for place in places.into_iter().rev() {
        let expression = place.expression;
        let (greater, equal) = match place.value {
            None => {
                // Null is greater than every value, so only in a descending order do values follow it.
                let greater = place
                    .descending
                    .then(|| format!("{expression} IS NOT NULL"));
                (greater, format!("{expression} IS NULL"))
            }
            Some(value) => {
                let parameter = query.parameter(Bound::Scalar(value));
                let sign = if place.descending { '<' } else { '>' };
                let mut greater = format!("{expression} {sign} {parameter}");
                // In an ascending order nulls follow all values.
                if place.is_nullable && !place.descending {
                    greater = format!("({greater} OR {expression} IS NULL)");
                }
                (Some(greater), format!("{expression} = {parameter}"))
            }
        };
        let equal = condition.map(|rest| format!("({equal} AND {rest})"));
        condition = match (greater, equal) {
            (Some(greater), Some(equal)) => Some(format!("({greater} OR {equal})")),
            (greater, equal) => greater.or(equal),
        };
    }
    condition.unwrap_or_else(|| "false".to_owned())
}

/// A platform table's rows of one organization, with exactly the columns that are readable. Of datasets, those that
/// were made of tables in `visible`, an expression of identities; all if it is `None`.
pub(crate) fn platform_source(
    table: PlatformTable,
    organization: &str,
    visible: Option<&str>,
) -> String {
    let source = match table {
        PlatformTable::Table => "SELECT id, name, semantic_category FROM labdata.catalog_table",
        PlatformTable::Job => "SELECT id, name, description, archived, created_at FROM labdata.job",
        PlatformTable::JobExecution => {
            return format!(
                "SELECT e.id, e.job_id, j.name AS job_name, e.status, e.started_at, e.completed_at, e.created_at, \
                 e.script_version, e.trigger_file_id \
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
            let condition = visible.map(|tables| format!(" AND tables <@ {tables}"));
            return format!(
                "SELECT id, name, description, row_count, created_at FROM labdata.dataset \
                 WHERE organization_id = {organization}{}",
                condition.unwrap_or_default()
            );
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
