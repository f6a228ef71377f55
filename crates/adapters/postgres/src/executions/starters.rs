//! Users, keys and triggers that started executions.

use std::collections::BTreeMap;

use diesel::{
    QueryableByName,
    sql_types::{Array, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    executions::started_by::Starter,
    ids::{ApiKeyId, ExecutionId, OrganizationId, TriggerId, UserId},
    people::author::{Author, NamedKey, NamedUser},
};
use uuid::Uuid;

use crate::database::{errors::Fault, pool::Connection};

#[derive(QueryableByName)]
struct StarterRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    user_id: Uuid,
    #[diesel(sql_type = Text)]
    email: String,
    #[diesel(sql_type = Text)]
    user_name: String,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    api_key_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    key_name: Option<String>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    trigger_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    author_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    author_email: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    author_name: Option<String>,
}

impl From<StarterRow> for (ExecutionId, Starter) {
    fn from(row: StarterRow) -> Self {
        let api_key = row.api_key_id.zip(row.key_name);
        let author = Author {
            user: NamedUser {
                id: UserId::new(row.user_id),
                email: row.email,
                name: row.user_name,
            },
            api_key: api_key.map(|(id, name)| NamedKey {
                id: ApiKeyId::new(id),
                name,
            }),
        };
        let starter = Starter {
            author,
            trigger: row.trigger_id.map(TriggerId::new),
            script_author: row
                .author_id
                .zip(row.author_email.zip(row.author_name))
                .map(|(id, (email, name))| NamedUser {
                    id: UserId::new(id),
                    email,
                    name,
                }),
        };
        (ExecutionId::new(row.id), starter)
    }
}

pub(super) async fn starters(
    connection: &mut Connection,
    organization: OrganizationId,
    ids: &[ExecutionId],
) -> Result<BTreeMap<ExecutionId, Starter>, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let rows: Vec<StarterRow> = diesel::sql_query(
        // LEFT JOIN but for the user: not every execution has a key or a script.
        "SELECT it.id, it.started_by AS user_id, person.email, person.name AS user_name, it.trigger_id, \
             api_key.id AS api_key_id, api_key.name AS key_name, \
             author.id AS author_id, author.email AS author_email, author.name AS author_name \
         FROM labdata.job_execution it \
         JOIN labdata.app_user person \
             ON person.organization_id = it.organization_id AND person.id = it.started_by \
         LEFT JOIN labdata.api_key \
             ON api_key.organization_id = it.organization_id AND api_key.id = it.api_key_id \
         LEFT JOIN labdata.job_version script \
             ON script.organization_id = it.organization_id AND script.job_id = it.job_id \
             AND script.version_number = it.script_version \
         LEFT JOIN labdata.app_user author \
             ON author.organization_id = script.organization_id AND author.id = script.created_by \
         WHERE it.organization_id = $1 AND it.id = ANY($2)",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Array<SqlUuid>, _>(ids)
    .load(connection)
    .await?;
    Ok(rows.into_iter().map(Into::into).collect())
}
