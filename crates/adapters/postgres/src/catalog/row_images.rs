//! Values of changed rows that the ledger retains follow the definitions of their table, as recorded changes do. Those of
//! a table in the trash stay, and are not read.

use diesel::sql_types::{Text, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Column, ColumnRename, Table},
    ids::OrganizationId,
    scalar::KeyValue,
};
use labdata_ports::PortError;

use crate::database::{
    errors::port_error,
    sql::{Statement, literal, statement},
};

/// The condition for entries with images of a table.
fn own(organization: &str, table: &str) -> String {
    format!(
        "l.organization_id = {organization}::uuid AND l.table_name = {table} AND l.trash_number IS NULL \
         AND l.row_images IS NOT NULL"
    )
}

/// A statement about entries of a table, whose condition is that of [`own`] with `$1` and `$2`.
fn of_table(text: String, organization: OrganizationId, table: &str) -> Statement<'_> {
    statement(text)
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Text, _>(table)
}

async fn run(
    connection: &mut AsyncPgConnection,
    statement: Statement<'_>,
) -> Result<(), PortError> {
    statement.execute(connection).await.map_err(port_error)?;
    Ok(())
}

/// The images of an entry, numbered, as FROM.
const IMAGES: &str = "json_array_elements(l.row_images) WITH ORDINALITY AS e(image, n)";

/// A statement that rewrites each image of the table from `e.image`. `values` is an expression over the values `v` of one
/// side of it, of which `{side}` is the name. As `json`, which holds every number exactly and the order of columns.
fn rewrite(joined: &str, values: &str) -> String {
    let side = |name: &str| {
        format!(
            "CASE WHEN json_typeof(e.image -> '{name}') = 'object' THEN ({}) END",
            values.replace("{side}", name)
        )
    };
    format!(
        "UPDATE labdata.write_ledger l SET row_images = (SELECT json_agg(json_build_object('id', e.image -> 'id', \
             'before', {before}, 'after', {after}) ORDER BY e.n) FROM {IMAGES}{joined}) WHERE {own}",
        own = own("$1", "$2"),
        before = side("before"),
        after = side("after"),
    )
}

/// The values of one side of an image, numbered, as FROM.
const VALUES: &str = "json_each(e.image -> '{side}') WITH ORDINALITY AS v(name, value, n)";

/// Renames a column.
pub(super) async fn rename_in_images(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    rename: &ColumnRename,
) -> Result<(), PortError> {
    let renamed = format!(
        "SELECT json_object_agg(CASE v.name WHEN $3 THEN $4 ELSE v.name END, v.value ORDER BY v.n) FROM {VALUES}"
    );
    let renamed = of_table(rewrite("", &renamed), organization, &table.name)
        .bind::<Text, _>(&rename.before.name)
        .bind::<Text, _>(&rename.after.name);
    run(connection, renamed).await
}

/// Removes the values of a column.
pub(crate) async fn drop_from_images(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    column: &Column,
) -> Result<(), PortError> {
    let rest = format!(
        "SELECT json_object_agg(v.name, v.value ORDER BY v.n) FROM {VALUES} WHERE v.name <> $3"
    );
    let rest = of_table(rewrite("", &rest), organization, &table.name);
    run(connection, rest.bind::<Text, _>(&column.name)).await
}

/// Copies a column's values into the schema of its entry in the trash.
pub(crate) async fn keep_images(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    column: &Column,
    schema: &str,
) -> Result<(), PortError> {
    let name = literal(&column.name);
    let copy = format!(
        "CREATE TABLE {schema}._images AS SELECT l.id AS ledger_id, e.n, e.image ->> 'id' AS row_id, \
             e.image -> 'before' -> {name} AS before, e.image -> 'after' -> {name} AS after \
         FROM labdata.write_ledger l CROSS JOIN LATERAL {IMAGES} WHERE {own}",
        // Statements that define tables take no parameters.
        own = own(&literal(&organization.to_string()), &literal(&table.name)),
    );
    connection.batch_execute(&copy).await.map_err(port_error)
}

/// The statement that makes sure of the copies of [`keep_images`], which earlier versions of the program did not make.
pub(crate) fn images_of_entry(schema: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {schema}._images (ledger_id bigint, n bigint, row_id text, before json, after json)"
    )
}

/// Adds a column's values again.
pub(crate) async fn give_images_back(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    column: &Column,
    schema: &str,
) -> Result<(), PortError> {
    let added = "SELECT json_object_agg(v.name, v.value ORDER BY v.n) FROM ( \
             SELECT name, value, n FROM json_each(e.image -> '{side}') WITH ORDINALITY AS u(name, value, n) \
             UNION ALL SELECT $3, i.{side}, 9223372036854775807 WHERE i.{side} IS NOT NULL) v";
    let joined = format!(" LEFT JOIN {schema}._images i ON i.ledger_id = l.id AND i.n = e.n");
    run(connection, statement(images_of_entry(schema))).await?;
    let returned = format!(
        "{} AND l.id IN (SELECT ledger_id FROM {schema}._images)",
        rewrite(&joined, added)
    );
    let returned = of_table(returned, organization, &table.name);
    run(connection, returned.bind::<Text, _>(&column.name)).await
}

/// Forgets the values of a row; returns whether there were any.
pub(crate) async fn forget_images(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    key: &KeyValue,
) -> Result<bool, diesel::result::Error> {
    let forget = format!(
        // The row stays in the list, as one whose values are not retained.
        "UPDATE labdata.write_ledger l SET row_images = (SELECT json_agg(CASE e.image ->> 'id' WHEN $3 THEN \
             json_build_object('id', $3, 'before', NULL, 'after', NULL) ELSE e.image END ORDER BY e.n) FROM {IMAGES}) \
         WHERE {own} AND $3 = ANY (l.ids) AND EXISTS (SELECT FROM {IMAGES} WHERE e.image ->> 'id' = $3 \
             AND coalesce(e.image ->> 'before', e.image ->> 'after') IS NOT NULL)",
        own = own("$1", "$2"),
    );
    let forget = of_table(forget, organization, &table.name).bind::<Text, _>(key.to_string());
    Ok(forget.execute(connection).await? > 0)
}

/// Deletes the values of all rows of a table.
pub(super) async fn drop_images(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &str,
) -> Result<(), PortError> {
    let own = own("$1", "$2");
    let dropped = format!("UPDATE labdata.write_ledger l SET row_images = NULL WHERE {own}");
    run(connection, of_table(dropped, organization, table)).await
}
