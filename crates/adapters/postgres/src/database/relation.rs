//! Relations of the database, by name.

use diesel::{
    QueryableByName,
    sql_types::{Bool, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = Bool)]
    found: bool,
}

/// Returns true if a table or an index has that name.
pub(crate) async fn exists(
    connection: &mut AsyncPgConnection,
    relation: &str,
) -> Result<bool, diesel::result::Error> {
    // Null for a missing relation, where a cast to `regclass` would fail.
    let Found { found } = diesel::sql_query("SELECT to_regclass($1) IS NOT NULL AS found")
        .bind::<Text, _>(relation)
        .get_result(connection)
        .await?;
    Ok(found)
}
