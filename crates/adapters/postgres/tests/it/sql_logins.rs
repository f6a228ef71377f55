//! SQL logins on a real server: what a person's tool can do in its session, attacks among it.

use labdata_domain::{
    catalog::TableAccess,
    ids::{GroupId, OrganizationId, SqlLoginId},
    outward::sql_logins::{EndReason, LOGIN_CONNECTIONS, SqlLogin, SqlLoginLimits, SqlPassword},
    people::{
        group::{Group, GroupChange},
        role::Role,
        tenancy::User,
    },
    scalar::DataType::Text,
};
use labdata_port_contracts::{
    catalog::definitions,
    given::{self, at},
};
use labdata_ports::{
    catalog::CatalogStore,
    outward::sql_logins::{AddedLogin, SqlLoginRepository},
    people::{groups::GroupRepository, tenancy::TenancyRepository},
};
use labdata_postgres::{
    PgCatalogStore, PgGroupRepository, PgSqlLoginRepository, PgTenancyRepository,
};
use tokio_postgres::Client;

use crate::{
    look_behind,
    managed_server::revoke_public,
    query_lab::{QueryLab, schema},
    texts,
};

/// Ada's login, beside tables of two organizations.
struct LoginLab {
    lab: QueryLab,
    logins: PgSqlLoginRepository,
    catalog: PgCatalogStore,
    groups: PgGroupRepository,
    ada: User,
    login: SqlLogin,
}

impl LoginLab {
    async fn over(lab: QueryLab) -> Self {
        // The first query revokes what everyone may do, as the start of the program does.
        lab.rows("select 1").await;
        let tenancy = PgTenancyRepository::new(lab.database.clone());
        // From an administrator nothing is hidden.
        let ada = User {
            role: Role::Member,
            ..given::user(lab.ours, "ada@example.org")
        };
        tenancy.ensure_user(&ada).await.expect("a user");
        let logins = PgSqlLoginRepository::new(lab.database.clone());
        let login = Self::add(&logins, lab.ours, &ada).await;
        Self {
            catalog: PgCatalogStore::new(lab.database.clone()),
            groups: PgGroupRepository::new(lab.database.clone()),
            lab,
            logins,
            ada,
            login,
        }
    }

    async fn new() -> Self {
        Self::over(QueryLab::new().await).await
    }

    async fn add(
        logins: &PgSqlLoginRepository,
        organization: OrganizationId,
        user: &User,
    ) -> SqlLogin {
        let id = SqlLoginId::new(given::uuid());
        let login = SqlLogin::begin(id, user.id, "psql".to_owned(), None, at(0)).expect("a login");
        let password = SqlPassword::from_random([7; 32]);
        let added = logins
            .add(organization, &login, &password, SqlLoginLimits::OF_PLATFORM)
            .await;
        assert_eq!(added.expect("added"), AddedLogin::Added);
        login
    }

    fn url(&self) -> String {
        format!("postgresql://{}@{}", self.login.role(), self.lab.role_host)
    }

    /// A session of the login.
    async fn session(&self) -> Client {
        look_behind(&self.url()).await
    }

    async fn define(&self, name: &str, access: TableAccess) {
        let mut definition = definitions::curated(name, vec![definitions::column("words", Text)]);
        definition.access = Some(access);
        let defined = self.catalog.define(self.lab.ours, &definition, at(1)).await;
        defined.expect("a table");
    }

    /// Ends the sessions of the login from now on.
    async fn end(&self, reason: EndReason) {
        let ended = self.logins.end(self.lab.ours, self.login.id, reason, at(1));
        ended.await.expect("ended");
    }
}

/// True if a session can still ask.
async fn is_alive(session: &Client) -> bool {
    session.simple_query("SELECT 1").await.is_ok()
}

async fn is_refused(session: &Client, sql: &str) -> bool {
    session.simple_query(sql).await.is_err()
}

const TABLES: &str = "SELECT table_name::text FROM information_schema.tables \
    WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY table_name COLLATE \"C\"";

#[tokio::test]
async fn a_tool_finds_tables_points_keys_and_comments() {
    let lab = LoginLab::new().await;
    let mut sample = definitions::sample();
    sample.description = Some("What was taken".to_owned());
    let defined = lab.catalog.define(lab.lab.ours, &sample, at(1)).await;
    defined.expect("described");
    let session = lab.session().await;
    let tables = texts(&session, TABLES).await;
    for table in ["curve", "every_type", "measurement", "sample"] {
        assert!(tables.contains(&table.to_owned()), "{tables:?}");
    }
    assert!(!tables.contains(&"secret".to_owned()), "{tables:?}");
    let count = "SELECT count(*)::text FROM";
    for (table, rows) in [("sample", "3"), ("curve", "3"), ("measurement", "0")] {
        assert_eq!(texts(&session, &format!("{count} {table}")).await, [rows]);
    }
    let described = "SELECT obj_description('sample'::regclass, 'pg_class')";
    assert_eq!(texts(&session, described).await, ["What was taken"]);
    let keys = "SELECT contype::text || ' ' || conrelid::regclass::text FROM pg_catalog.pg_constraint \
        WHERE conrelid = 'measurement'::regclass AND contype IN ('p', 'f') ORDER BY 1";
    assert_eq!(
        texts(&session, keys).await,
        ["f measurement", "p measurement"]
    );
    let comment = "SELECT col_description('curve'::regclass, a.attnum) FROM pg_catalog.pg_attribute a \
        WHERE a.attrelid = 'curve'::regclass AND a.attname = 'sample_id'";
    assert_eq!(
        texts(&session, comment).await,
        ["What sample holds (references sample)"]
    );
}

#[tokio::test]
async fn a_session_is_as_harmless_as_a_query() {
    let lab = LoginLab::new().await;
    let (ours, theirs) = (schema(lab.lab.ours), schema(lab.lab.theirs));
    let session = lab.session().await;
    // Nothing rests on what a session can set.
    let lifted = "SET default_transaction_read_only = off; SET statement_timeout = 0";
    session.simple_query(lifted).await.expect("lifted");
    let attacks = [
        // Rows of others, of the platform, of other logins.
        format!("SELECT * FROM {theirs}.sample"),
        format!("SELECT * FROM {theirs}_chunks.curve"),
        format!("SELECT * FROM {ours}_chunks.curve"),
        format!("SELECT * FROM {ours}_platform.file"),
        "SELECT * FROM labdata.api_key".to_owned(),
        "SELECT labdata.lock_key('tables')".to_owned(),
        "SELECT * FROM pg_catalog.pg_authid".to_owned(),
        "SELECT * FROM pg_catalog.pg_shadow".to_owned(),
        "SELECT * FROM pg_catalog.pg_stat_activity".to_owned(),
        "SELECT * FROM pg_catalog.pg_statistic".to_owned(),
        "SELECT * FROM pg_catalog.pg_stats".to_owned(),
        "SELECT * FROM pg_catalog.pg_largeobject".to_owned(),
        // Other roles.
        "SET ROLE labdata".to_owned(),
        "SET SESSION AUTHORIZATION labdata".to_owned(),
        format!("SET ROLE {theirs}_reader"),
        format!("SET ROLE {ours}_reader"),
        format!("ALTER ROLE {} SUPERUSER", lab.login.role()),
        format!("ALTER ROLE {} CONNECTION LIMIT 100", lab.login.role()),
        "CREATE ROLE mine".to_owned(),
        "SELECT set_config('role', 'labdata', false)".to_owned(),
        // Writes, with any settings of the session.
        "SET default_transaction_read_only = off; DELETE FROM sample".to_owned(),
        "BEGIN READ WRITE; UPDATE sample SET name = 'x'".to_owned(),
        "ROLLBACK; SET default_transaction_read_only = off".to_owned()
            + "; INSERT INTO sample (id) VALUES ('x')",
        "BEGIN READ WRITE; SELECT * FROM sample FOR UPDATE".to_owned(),
        "ROLLBACK; BEGIN READ WRITE; LOCK TABLE sample IN ACCESS EXCLUSIVE MODE".to_owned(),
        "ROLLBACK; CREATE TEMP TABLE mine (n int)".to_owned(),
        "CREATE TABLE mine (n int)".to_owned(),
        "CREATE TABLE public.mine (n int)".to_owned(),
        "CREATE SCHEMA mine".to_owned(),
        "CREATE VIEW mine AS SELECT 1".to_owned(),
        "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'".to_owned(),
        "DO $$ BEGIN PERFORM 1; END $$".to_owned(),
        "TRUNCATE sample".to_owned(),
        "COMMENT ON TABLE sample IS 'x'".to_owned(),
        "ALTER TABLE sample ADD COLUMN mine int".to_owned(),
        "ANALYZE sample; VACUUM FULL sample; DROP TABLE sample".to_owned(),
        "SELECT nextval('mine')".to_owned(),
        "SELECT lo_create(0)".to_owned(),
        "SELECT lo_import('/etc/passwd')".to_owned(),
        "SELECT lo_from_bytea(0, 'x')".to_owned(),
        // The machine and other servers.
        "COPY (SELECT 1) TO PROGRAM 'id'".to_owned(),
        "COPY (SELECT 1) TO '/tmp/mine'".to_owned(),
        "COPY sample FROM '/etc/passwd'".to_owned(),
        "SELECT pg_read_file('/etc/passwd')".to_owned(),
        "SELECT * FROM pg_ls_dir('/')".to_owned(),
        "SELECT pg_stat_file('/etc/passwd')".to_owned(),
        "CREATE EXTENSION dblink".to_owned(),
        "SELECT dblink('', 'SELECT 1')".to_owned(),
        "CREATE EXTENSION postgres_fdw".to_owned(),
        "LOAD 'auto_explain'".to_owned() + "; SELECT pg_reload_conf()",
        "ALTER SYSTEM SET work_mem = '1GB'".to_owned(),
        // Other sessions, and what holds them up.
        "SELECT pg_terminate_backend(1)".to_owned(),
        "SELECT pg_cancel_backend(1)".to_owned(),
        "SELECT pg_advisory_lock(1)".to_owned(),
        "SELECT pg_try_advisory_xact_lock(1)".to_owned(),
        "SELECT pg_sleep(1)".to_owned(),
        "SELECT pg_notify('labdata_event', '')".to_owned(),
        "SELECT query_to_xml('SELECT * FROM labdata.api_key', true, true, '')".to_owned(),
        "SELECT ts_stat('SELECT 1')".to_owned(),
        "CREATE PUBLICATION mine FOR ALL TABLES".to_owned(),
        "SELECT pg_create_logical_replication_slot('mine', 'pgoutput')".to_owned(),
        "SELECT pg_create_restore_point('mine')".to_owned(),
        "SELECT pg_switch_wal()".to_owned(),
        "SELECT pg_stat_reset()".to_owned(),
        "SET temp_file_limit = -1".to_owned(),
        "SET session_replication_role = replica".to_owned(),
        "SET log_statement = 'none'".to_owned(),
    ];
    for attack in &attacks {
        assert!(is_refused(&session, attack).await, "{attack}");
        // One that fails within a transaction leaves it open.
        session.simple_query("ROLLBACK").await.expect("rolled back");
    }
    let rows = texts(
        &lab.lab.behind,
        &format!("SELECT name FROM {ours}.sample ORDER BY 1"),
    )
    .await;
    assert_eq!(rows, ["ours 1", "ours 2", "ours 3"]);
}

#[tokio::test]
async fn a_login_has_eight_connections() {
    let lab = LoginLab::new().await;
    let mut sessions = Vec::new();
    for _ in 0..LOGIN_CONNECTIONS {
        sessions.push(lab.session().await);
    }
    let one_more = tokio_postgres::connect(&lab.url(), tokio_postgres::NoTls).await;
    let error = one_more.err().expect("refused");
    assert_eq!(error.code().expect("its code").code(), "53300");
}

#[tokio::test]
async fn rights_follow_definitions_in_their_transaction() {
    let lab = LoginLab::new().await;
    let group = Group {
        id: GroupId::new(given::uuid()),
        organization: lab.lab.ours,
        name: "few".to_owned(),
        members: Vec::new(),
        created_at: at(0),
    };
    lab.groups.add(&group).await.expect("a group");
    let session = lab.session().await;
    let read = "SELECT words FROM notes";
    lab.define("notes", TableAccess::default()).await;
    assert!(!is_refused(&session, read).await);
    let closed = TableAccess {
        read: vec!["few".to_owned()],
        write: Vec::new(),
    };
    lab.define("notes", closed).await;
    assert!(is_refused(&session, read).await);
    let members = GroupChange {
        members: Some(vec![lab.ada.id]),
        ..GroupChange::default()
    };
    let joined = lab.groups.update(lab.lab.ours, group.id, &members).await;
    joined.expect("a member");
    lab.logins.maintain().await.expect("granted");
    assert!(!is_refused(&session, read).await);
    let dropped = lab.catalog.drop_table(lab.lab.ours, "notes", true, at(2));
    dropped.await.expect("dropped");
    assert!(is_refused(&session, read).await);
}

#[tokio::test]
async fn the_end_of_a_login_ends_its_sessions_and_its_role() {
    let lab = LoginLab::new().await;
    let session = lab.session().await;
    lab.end(EndReason::Revoked).await;
    assert!(is_refused(&session, "SELECT * FROM sample").await);
    let new = tokio_postgres::connect(&lab.url(), tokio_postgres::NoTls).await;
    assert!(new.is_err());
    // The first pass ends sessions, one after their end removes the role.
    for _ in 0..200 {
        lab.logins.maintain().await.expect("maintained");
        let role = format!(
            "SELECT rolname::text FROM pg_roles WHERE rolname = '{}'",
            lab.login.role()
        );
        if texts(&lab.lab.behind, &role).await.is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(!is_alive(&session).await);
    let left = "SELECT id::text FROM labdata.sql_login";
    lab.logins.maintain().await.expect("maintained");
    assert!(texts(&lab.lab.behind, left).await.is_empty());
}

#[tokio::test]
async fn a_login_without_its_role_is_due_to_end() {
    let lab = LoginLab::new().await;
    let role = lab.login.role();
    // As after a restore elsewhere: dumps of a database hold no roles.
    let drop = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    lab.lab.run_behind(&drop).await;
    let due = lab.logins.due(true, at(1), 10).await.expect("due logins");
    assert_eq!(due[0].reason, EndReason::RoleMissing);
    lab.end(EndReason::RoleMissing).await;
    lab.logins.maintain().await.expect("maintained");
    let ended = lab.logins.get(lab.lab.ours, lab.login.id).await;
    assert!(!ended.expect("it is listed").is_active());
}

#[tokio::test]
async fn a_platform_that_may_create_roles_needs_no_more() {
    let lab = QueryLab::managed().await;
    let lab = LoginLab::over(lab).await;
    let session = lab.session().await;
    assert_eq!(
        texts(&session, "SELECT count(*)::text FROM sample").await,
        ["3"]
    );
    let theirs = schema(lab.lab.theirs);
    for attack in [
        format!("SELECT * FROM {theirs}.sample"),
        "SELECT * FROM labdata.api_key".to_owned(),
        "DELETE FROM sample".to_owned(),
        "CREATE TABLE mine (n int)".to_owned(),
    ] {
        assert!(is_refused(&session, &attack).await, "{attack}");
    }
    lab.end(EndReason::Expired).await;
    let maintained = lab.logins.maintain().await.expect("maintained");
    assert_eq!(maintained.sessions, 1);
}

#[tokio::test]
async fn tools_find_tables_where_an_administrator_has_revoked_rights() {
    let lab = QueryLab::managed().await;
    let all = lab.role_host.clone();
    let superuser = format!("postgresql://labdata@{all}");
    revoke_public(&superuser).await;
    let lab = LoginLab::over(lab).await;
    let session = lab.session().await;
    let tables = texts(&session, TABLES).await;
    assert!(tables.contains(&"sample".to_owned()), "{tables:?}");
    assert!(is_refused(&session, "SELECT pg_sleep(1)").await);
}

#[tokio::test]
async fn a_platform_that_may_not_create_roles_makes_no_login() {
    let lab = QueryLab::managed().await;
    let platform = "SELECT r.rolname::text FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba \
        WHERE d.datname = current_database()";
    let platform = texts(&lab.behind, platform).await.remove(0);
    lab.run_behind(&format!("ALTER ROLE {platform} NOCREATEROLE"))
        .await;
    let tenancy = PgTenancyRepository::new(lab.database.clone());
    let ada = given::user(lab.ours, "ada@example.org");
    tenancy.ensure_user(&ada).await.expect("a user");
    let logins = PgSqlLoginRepository::new(lab.database.clone());
    assert!(!logins.may_create_roles().await.expect("known"));
    let id = SqlLoginId::new(given::uuid());
    let login = SqlLogin::begin(id, ada.id, "psql".to_owned(), None, at(0)).expect("a login");
    let password = SqlPassword::from_random([7; 32]);
    let added = logins
        .add(lab.ours, &login, &password, SqlLoginLimits::OF_PLATFORM)
        .await;
    assert_eq!(added.expect("an outcome"), AddedLogin::RolesRefused);
}
