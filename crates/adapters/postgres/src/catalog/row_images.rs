//! Values of changed rows that the ledger retains follow the definitions of their table, as recorded changes do. Those of
//! a table in the trash stay, and are not read.

use diesel::sql_types::{Text, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Column, ColumnRename, Table},
    ids::OrganizationId,
    scalar::KeyValue,
};

use crate::database::sql::literal;

type Done = Result<(), diesel::result::Error>;

/// Entries with images of the table `$2` of the organization `$1`.
const OWN: &str = "l.organization_id = $1 AND l.table_name = $2 AND l.trash_number IS NULL AND l.row_images IS NOT NULL";

/// The images of an entry, numbered, as FROM.
const IMAGES: &str = "json_array_elements(l.row_images) WITH ORDINALITY AS e(image, n)";

/// A statement that makes each image of the table anew from `e.image`. `values` is an expression over the values `v` of one
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
             'before', {before}, 'after', {after}) ORDER BY e.n) FROM {IMAGES}{joined}) WHERE {OWN}",
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
) -> Done {
    let renamed = format!(
        "SELECT json_object_agg(CASE v.name WHEN $3 THEN $4 ELSE v.name END, v.value ORDER BY v.n) FROM {VALUES}"
    );
    diesel::sql_query(rewrite("", &renamed))
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Text, _>(&table.name)
        .bind::<Text, _>(&rename.before.name)
        .bind::<Text, _>(&rename.after.name)
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes the values of a column.
pub(crate) async fn drop_from_images(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    column: &Column,
) -> Done {
    let rest = format!(
        "SELECT json_object_agg(v.name, v.value ORDER BY v.n) FROM {VALUES} WHERE v.name <> $3"
    );
    diesel::sql_query(rewrite("", &rest))
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Text, _>(&table.name)
        .bind::<Text, _>(&column.name)
        .execute(connection)
        .await?;
    Ok(())
}

/// Copies a column's values into the schema of its entry in the trash.
pub(crate) async fn keep_images(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    column: &Column,
    schema: &str,
) -> Done {
    let name = literal(&column.name);
    let copy = format!(
        "CREATE TABLE {schema}._images AS SELECT l.id AS ledger_id, e.n, e.image ->> 'id' AS row_id, \
             e.image -> 'before' -> {name} AS before, e.image -> 'after' -> {name} AS after \
         FROM labdata.write_ledger l CROSS JOIN LATERAL {IMAGES} WHERE {OWN}"
    );
    let copy = copy.replace(
        "$1",
        &format!("{}::uuid", literal(&organization.to_string())),
    );
    let copy = copy.replace("$2", &literal(&table.name));
    connection.batch_execute(&copy).await
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
) -> Done {
    let added = "SELECT json_object_agg(v.name, v.value ORDER BY v.n) FROM ( \
             SELECT name, value, n FROM json_each(e.image -> '{side}') WITH ORDINALITY AS u(name, value, n) \
             UNION ALL SELECT $3, i.{side}, 9223372036854775807 WHERE i.{side} IS NOT NULL) v";
    let joined = format!(" LEFT JOIN {schema}._images i ON i.ledger_id = l.id AND i.n = e.n");
    connection.batch_execute(&images_of_entry(schema)).await?;
    diesel::sql_query(format!(
        "{} AND l.id IN (SELECT ledger_id FROM {schema}._images)",
        rewrite(&joined, added)
    ))
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(&table.name)
    .bind::<Text, _>(&column.name)
    .execute(connection)
    .await?;
    Ok(())
}

/// Forgets the values of a row; returns whether there were any.
pub(crate) async fn forget_images(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    key: &KeyValue,
) -> Result<bool, diesel::result::Error> {
    let forgotten = diesel::sql_query(format!(
        // The row stays in the list, as one whose values are not retained.
        "UPDATE labdata.write_ledger l SET row_images = (SELECT json_agg(CASE e.image ->> 'id' WHEN $3 THEN \
             json_build_object('id', $3, 'before', NULL, 'after', NULL) ELSE e.image END ORDER BY e.n) FROM {IMAGES}) \
         WHERE {OWN} AND $3 = ANY (l.ids) AND EXISTS (SELECT FROM {IMAGES} WHERE e.image ->> 'id' = $3 \
             AND coalesce(e.image ->> 'before', e.image ->> 'after') IS NOT NULL)"
    ))
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(&table.name)
    .bind::<Text, _>(key.to_string())
    .execute(connection)
    .await?;
    Ok(forgotten > 0)
}

/// Deletes the values of all rows of a table.
pub(super) async fn drop_images(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &str,
) -> Done {
    diesel::sql_query(format!(
        "UPDATE labdata.write_ledger l SET row_images = NULL WHERE {OWN}"
    ))
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(table)
    .execute(connection)
    .await?;
    Ok(())
}
