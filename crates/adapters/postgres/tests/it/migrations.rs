//! Migrations: forwards, back and forwards again.

use std::sync::Arc;

use futures::future::join_all;
use labdata_domain::{catalog::core_tables, data::restore::OnConflict, people::group::GroupChange};
use labdata_port_contracts::{
    Harness, Subject,
    data::lab::{Lab, request, series, writing_time},
    fixtures::Tenants,
};
use labdata_ports::{
    PortError,
    data::{Attribution, Restore, RevertRequest},
    people::groups::GroupRepository,
};
use labdata_postgres::{Database, DatabaseSettings, migrate, revert_all_migrations};
use labdata_test_database::TestDatabase;
use serde_json::{Value, json};

use crate::{contracts::Postgres, look_behind, texts};

/// Number of migrations: one directory each.
fn count() -> usize {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../migrations");
    std::fs::read_dir(directory)
        .expect("the migrations")
        .count()
}

fn pool(database: &TestDatabase) -> Database {
    Database::new(database.url(), DatabaseSettings::default()).expect("a pool")
}

/// All that the platform's schema holds: columns, constraints, indexes.
const CONTENTS: &str = "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, \
        column_default, is_identity) FROM information_schema.columns WHERE table_schema = 'labdata' \
     UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) \
        FROM pg_constraint WHERE connamespace = 'labdata'::regnamespace \
     UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'labdata' \
     ORDER BY 1";

#[tokio::test]
async fn forwards_back_and_forwards_again_is_the_same_schema() {
    let own = TestDatabase::unmigrated().await;
    let database = pool(&own);
    assert_eq!(migrate(&database).await.expect("forwards").len(), count());
    let client = look_behind(own.url()).await;
    let first = texts(&client, CONTENTS).await;
    assert!(first.len() > 100, "{first:?}");

    revert_all_migrations(&database).await.expect("back");
    let relations = "SELECT relname::text FROM pg_class \
                     WHERE relnamespace = 'labdata'::regnamespace AND relkind <> 'i'";
    assert_eq!(
        texts(&client, relations).await,
        ["__diesel_schema_migrations"]
    );

    assert_eq!(
        migrate(&database).await.expect("forwards again").len(),
        count()
    );
    assert_eq!(texts(&client, CONTENTS).await, first);
}

#[tokio::test]
async fn nothing_is_left_outside_of_the_platform_schema() {
    let own = TestDatabase::new().await;
    let client = look_behind(own.url()).await;
    let strangers =
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(texts(&client, strangers).await, [""; 0]);
}

#[tokio::test]
async fn a_migrated_database_stays_as_it_is() {
    let own = TestDatabase::new().await;
    assert_eq!(migrate(&pool(&own)).await.expect("nothing to do"), [""; 0]);
}

#[tokio::test]
async fn of_racing_servers_each_migration_is_applied_by_one() {
    let own = TestDatabase::unmigrated().await;
    let servers: Vec<Database> = (0..4).map(|_| pool(&own)).collect();
    let applied = join_all(servers.iter().map(migrate)).await;
    let applied: usize = applied
        .into_iter()
        .map(|names| names.expect("migrated").len())
        .sum();
    assert_eq!(applied, count());
}

#[tokio::test]
async fn a_database_that_is_newer_than_the_program_is_refused() {
    let own = TestDatabase::new().await;
    let client = look_behind(own.url()).await;
    let newer =
        "INSERT INTO labdata.__diesel_schema_migrations (version) VALUES ('99991231235959')";
    client
        .batch_execute(newer)
        .await
        .expect("a newer migration");
    match migrate(&pool(&own)).await {
        Err(PortError::Internal(text)) => assert!(text.contains("newer"), "{text}"),
        other => panic!("{other:?}"),
    }
}

/// The role that the migration gives a user with keys of these scopes, ended or not.
async fn role_of(keys: &[(&str, &str)]) -> String {
    let own = TestDatabase::new().await;
    let client = look_behind(own.url()).await;
    let values: Vec<String> = keys
        .iter()
        .enumerate()
        .map(|(number, (scopes, ended))| {
            format!(
                "INSERT INTO labdata.api_key \
                 (id, organization_id, user_id, name, prefix, hash, scopes, created_at, {ended}) \
                 VALUES (gen_random_uuid(), '{ID}', '{ID}', 'k', 'prefix0{number}', \
                 decode(repeat('00', 32), 'hex'), '{{{scopes}}}', now(), now() - interval '1 day')",
                ended = if ended.is_empty() {
                    "last_used_at"
                } else {
                    ended
                },
            )
        })
        .collect();
    let given = format!(
        "INSERT INTO labdata.organization (id, name, schema_name, created_at) VALUES ('{ID}', 'lab', 'org_' || replace('{ID}', '-', ''), now()); \
         INSERT INTO labdata.app_user (id, organization_id, email, email_folded, name, created_at) \
         VALUES ('{ID}', '{ID}', 'a@b', 'a@b', 'A', now()); {}",
        values.join("; ")
    );
    client.batch_execute(&given).await.expect("users and keys");
    let migration = include_str!("../../../../../migrations/2026-11-26-002200_roles/up.sql");
    let (_, update) = migration.split_once("WITH key").expect("the update");
    client
        .batch_execute(&format!("WITH key{update}"))
        .await
        .expect("the update");
    texts(&client, "SELECT role FROM labdata.app_user")
        .await
        .remove(0)
}

const ID: &str = "0191d5a4-0000-7000-8000-000000000001";

#[tokio::test]
async fn users_from_before_have_the_role_of_their_widest_key() {
    for (keys, role) in [
        (&[][..], "member"),
        (&[("read", "")], "viewer"),
        (&[("write", "")], "member"),
        (&[("read", ""), ("read,write,admin", "")], "admin"),
        (&[("read", ""), ("admin", "revoked_at")], "viewer"),
        (&[("admin", "expires_at")], "admin"),
    ] {
        assert_eq!(role_of(keys).await, role, "{keys:?}");
    }
}

#[tokio::test]
async fn organizations_get_the_core_tables_that_came_after_them() {
    let harness = Postgres::fresh().await;
    harness.organization("lab").await;
    let client = look_behind(harness.url()).await;
    let tables = "SELECT c.relname::text FROM pg_class c JOIN labdata.organization o \
         ON c.relnamespace = to_regnamespace(quote_ident(o.schema_name)) WHERE c.relkind IN ('r', 'v') ORDER BY 1";
    let mut names: Vec<String> = core_tables().into_iter().map(|table| table.name).collect();
    names.sort_unstable();
    assert_eq!(texts(&client, tables).await, names);
    // As an organization was before the program had these tables.
    let schema = texts(&client, "SELECT schema_name FROM labdata.organization").await;
    let dropped = format!(
        "DROP TABLE {0}_chunks.instrument_curve CASCADE; DROP TABLE {0}.instrument_measurement CASCADE",
        schema[0]
    );
    client.batch_execute(&dropped).await.expect("dropped");
    assert_eq!(texts(&client, tables).await.len(), names.len() - 2);
    let database = Database::new(harness.url(), DatabaseSettings::default()).expect("a pool");
    assert_eq!(
        migrate(&database).await.expect("nothing to migrate"),
        [""; 0]
    );
    assert_eq!(texts(&client, tables).await, names);
}

#[tokio::test]
async fn narrowed_keys_from_before_name_their_tables_by_ids() {
    let own = TestDatabase::new().await;
    let client = look_behind(own.url()).await;
    let given = format!(
        "INSERT INTO labdata.organization (id, name, schema_name, created_at) VALUES ('{ID}', 'lab', 'org_' || replace('{ID}', '-', ''), now()); \
         INSERT INTO labdata.app_user (id, organization_id, email, email_folded, name, created_at) \
         VALUES ('{ID}', '{ID}', 'a@b', 'a@b', 'A', now()); \
         INSERT INTO labdata.catalog_table (id, organization_id, name, semantic_category) OVERRIDING SYSTEM VALUE \
         VALUES (901, '{ID}', 'kept', 'curated'), (902, '{ID}', 'both', 'curated'); \
         INSERT INTO labdata.trash (id, organization_id, kind, name, table_id, deleted_at, deleted_by, purge_at, size_bytes, content) \
         SELECT gen_random_uuid(), '{ID}', 'table', name, id, now(), '{ID}', now(), 0, '{{}}' \
         FROM (VALUES ('both', 903), ('dropped', 904), ('dropped', 905)) AS d (name, id); \
         INSERT INTO labdata.api_key (id, organization_id, user_id, name, prefix, hash, scopes, created_at, tables) \
         SELECT gen_random_uuid(), '{ID}', '{ID}', 'k', prefix, decode(repeat('00', 32), 'hex'), '{{read}}', now(), tables \
         FROM (VALUES ('prefix01', '{{kept,both,dropped,experiment}}'::text[]), ('prefix02', NULL), ('prefix03', '{{}}')) \
         AS k (prefix, tables)"
    );
    client.batch_execute(&given).await.expect("tables and keys");
    let tables = "SELECT coalesce((SELECT string_agg(t, ' ' ORDER BY t) FROM unnest(tables) t), tables::text, 'all') \
                  FROM labdata.api_key ORDER BY prefix";
    let up =
        include_str!("../../../../../migrations/2026-11-26-003300_narrow_keys_by_table_ids/up.sql");
    let down = include_str!(
        "../../../../../migrations/2026-11-26-003300_narrow_keys_by_table_ids/down.sql"
    );
    client.batch_execute(up).await.expect("forwards");
    let forwards = texts(&client, tables).await;
    assert_eq!(forwards, ["901 902 905 experiment", "all", "{}"]);
    client.batch_execute(down).await.expect("back");
    let back = texts(&client, tables).await;
    assert_eq!(back, ["905 both experiment kept", "all", "{}"]);
}

#[tokio::test]
async fn names_from_before_are_stored_as_new_ones_are() {
    let own = TestDatabase::new().await;
    let client = look_behind(own.url()).await;
    let given = format!(
        "INSERT INTO labdata.organization (id, name, schema_name, created_at) VALUES ('{ID}', 'lab', 'org_' || replace('{ID}', '-', ''), now()); \
         INSERT INTO labdata.job (id, organization_id, name, created_at) \
         SELECT gen_random_uuid(), '{ID}', name, now() \
         FROM unnest(ARRAY[' a', 'b', 'b ', 'Su\u{308}d', 'Read instrument file ']) AS name; \
         INSERT INTO labdata.user_group (id, organization_id, name, created_at) \
         SELECT gen_random_uuid(), '{ID}', name, now() FROM unnest(ARRAY['u\u{308}', 'g', 'G']) AS name"
    );
    client.batch_execute(&given).await.expect("jobs and groups");
    let up =
        include_str!("../../../../../migrations/2026-11-27-004310_store_names_composed/up.sql");
    client.batch_execute(up).await.expect("forwards");
    let names = async |table: &str| {
        let names = format!("SELECT name FROM labdata.{table} ORDER BY name COLLATE \"C\"");
        texts(&client, &names).await
    };
    // Two names that would become one stay.
    let jobs = ["Read instrument file ", "Süd", "a", "b", "b "];
    assert_eq!(names("job").await, jobs);
    assert_eq!(names("user_group").await, ["G", "g", "ü"]);
}

/// Groups of an earlier version whose names differ in case only stay, and can be changed and told apart.
#[tokio::test]
async fn twins_from_before_can_be_changed() {
    let harness = Postgres::fresh().await;
    let lab = harness.organization("lab").await;
    let client = look_behind(harness.url()).await;
    let given = format!(
        "INSERT INTO labdata.user_group (id, organization_id, name, created_at) \
         SELECT gen_random_uuid(), '{}', name, now() FROM unnest(ARRAY['g', 'G']) AS name",
        lab.id
    );
    client.batch_execute(&given).await.expect("groups");
    let groups: Arc<dyn GroupRepository> = harness.subject();
    let [upper, _] = &groups.list(lab.id).await.expect("groups")[..] else {
        panic!("two groups");
    };
    for name in ["G", "other"] {
        let change = GroupChange {
            name: Some(name.to_owned()),
            members: Some(Vec::new()),
        };
        let changed = groups.update(lab.id, upper.id, &change).await;
        assert_eq!(changed.expect("a change").name, name);
    }
}

#[tokio::test]
async fn replaced_series_become_json_on_the_way_back_and_return_from_it() {
    let harness = Postgres::fresh().await;
    let lab = Lab::with_tables(&harness).await;
    lab.insert("sample", json!([{"id": "a", "name": "a"}]))
        .await;
    let points = |time: Value| request([], [series("curve", json!("a"), json!({ "time": time }))]);
    lab.write(points(json!([1, 0.1]))).await.expect("points");
    let client = look_behind(harness.url()).await;
    let schema = texts(&client, "SELECT schema_name FROM labdata.organization").await;
    let curve = format!("{}_chunks.curve", schema[0]);
    let stored = format!("SELECT concat(_chunk, time, od) FROM {curve}");
    // Values that JSON has no number for, and a copy of the history as the trash makes it.
    let unusual = format!("UPDATE {curve} SET od = '{{NaN,-Infinity}}'");
    client.batch_execute(&unusual).await.expect("values");
    let before = texts(&client, &stored).await;
    let outcome = lab.write(points(json!([7]))).await.expect("other points");
    let copied =
        "CREATE SCHEMA copied; CREATE TABLE copied._history AS SELECT * FROM labdata.row_change";
    client.batch_execute(copied).await.expect("a copy");

    let down = include_str!(
        "../../../../../migrations/2026-11-27-003700_store_series_of_history_as_arrays/down.sql"
    );
    let up = include_str!(
        "../../../../../migrations/2026-11-27-003700_store_series_of_history_as_arrays/up.sql"
    );
    client.batch_execute(down).await.expect("back");
    for history in ["labdata.row_change", "copied._history"] {
        let values = format!(
            "SELECT concat(before -> 'time', before -> 'od', before -> '_order') FROM {history}"
        );
        assert_eq!(
            texts(&client, &values).await,
            ["[1,0.1][\"NaN\",\"-Infinity\"]null"],
            "{history}"
        );
    }
    client.batch_execute(up).await.expect("forwards");
    let undo = Attribution {
        target: Lab::new_execution("revert"),
        user: lab.user,
        api_key: lab.api_key,
        rights: lab.rights.clone(),
        now: writing_time(),
        source: None,
    };
    let execution = outcome.execution.expect("an execution");
    let revert = RevertRequest {
        restore: Some(Restore {
            on_conflict: OnConflict::Refuse,
            undo,
        }),
        ..lab.reverting(execution)
    };
    let reverted = lab.data.revert(lab.organization, &revert).await;
    assert_eq!(reverted.expect("restored").raws_restored_count, 2);
    assert_eq!(texts(&client, &stored).await, before);
}
