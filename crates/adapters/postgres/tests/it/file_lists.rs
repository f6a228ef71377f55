//! Listings among many files.

use labdata_domain::{
    files::{ExtensionFilter, File, FileFilter, NameQuery},
    ids::{InstrumentId, OrganizationId},
};
use labdata_port_contracts::{
    Harness,
    fixtures::{Instruments, Tenants},
    paging::{ALL, first},
};
use labdata_ports::files::FileRepository;
use labdata_postgres::{
    Database, DatabaseSettings, FileSearch, PgFileRepository, SearchLimits, prepare_file_search,
};
use labdata_test_database::TestDatabase;

use crate::{contracts::Postgres, look_behind, managed_server::managed_database, texts};

/// Six thousand files, three at a time, the older the farther apart: of two instruments; with a
/// frequent, a rare and a compound extension; with names of which parts are in each, in many, in
/// one among the oldest, and in the oldest half only.
const MANY_FILES: &str = "INSERT INTO labdata.file (id, organization_id, instrument_id, \
         source_type, status, original_path, file_name, path_folded, extension, path_hash, \
         content_type, object_key, size_bytes, crc32c, uploaded_at, created_at) \
     SELECT gen_random_uuid(), '{organization}', \
         CASE WHEN n % 4 = 0 THEN '{rare}' ELSE '{frequent}' END::uuid, 'manual_upload', \
         'confirmed', path, path, path, substring(path FROM '[^.]*$'), sha256(path::bytea), \
         'text/csv', gen_random_uuid(), 1, 'AAAAAA==', '2026-01-01Z'::timestamptz - power(2000 - n / 3, 2) * interval '1 s', \
         '2026-01-01Z' \
     FROM generate_series(1, 6000) n, LATERAL (SELECT concat('runs/plate_', lpad(n::text, 5, '0'), \
         CASE WHEN n = 7 THEN '_zebra' END, CASE WHEN n % 100 = 1 THEN '_αβγ' END, \
         CASE WHEN n < 3000 THEN '_oldway' END, \
         CASE WHEN n % 1000 = 5 THEN '.tar.gz' WHEN n % 50 = 0 THEN '.gz' ELSE '.csv' END) AS path) p";

async fn stored(postgres: &Postgres) -> (OrganizationId, InstrumentId) {
    let client = look_behind(postgres.url()).await;
    let mut ours = None;
    for name in ["theirs", "ours"] {
        let organization = postgres.organization(name).await.id;
        let frequent = postgres.instrument(organization, "frequent").await.id;
        let rare = postgres.instrument(organization, "rare").await.id;
        let insert = MANY_FILES
            .replace("{organization}", &organization.to_string())
            .replace("{frequent}", &frequent.to_string())
            .replace("{rare}", &rare.to_string());
        client.batch_execute(&insert).await.expect("stored");
        ours = Some((organization, rare));
    }
    client
        .batch_execute("VACUUM ANALYZE labdata.file")
        .await
        .expect("analyzed");
    ours.expect("two organizations")
}

fn filter(instrument: Option<InstrumentId>, extensions: &str, query: &str) -> FileFilter {
    FileFilter {
        instrument,
        execution: None,
        extensions: ExtensionFilter::parse(extensions),
        query: NameQuery::parse(query).expect("a query"),
    }
}

/// Limits so small that searches among six thousand files take every step.
const SMALL: SearchLimits = SearchLimits {
    walked: 100,
    found: 50,
    sampled: 20,
    frequent: 2,
};

const QUERIES: [&str; 15] = [
    "",
    "plate",
    "zebra",
    "_αβγ",
    "oldway",
    "00007",
    "plate_03",
    "e_0",
    "7",
    "_o",
    "no such",
    "plate_00007_zebra_oldway",
    // The number of the first two is in few paths, and that of the last in many.
    "plate_00012",
    "te_01001_αβ",
    "plate_000",
];
const EXTENSIONS: [&str; 6] = ["", "csv", "tar.gz", "gz,csv", "tar.gz,csv", "none"];

fn of_database(postgres: &Postgres) -> PgFileRepository {
    let database = Database::new(postgres.url(), DatabaseSettings::default()).expect("a pool");
    PgFileRepository::new(database).with_search_limits(SMALL)
}

/// Fails unless the first pages of every filter show what the domain says.
async fn assert_lists_are_right(
    files: &PgFileRepository,
    lab: OrganizationId,
    rare: InstrumentId,
    of_all: usize,
) {
    let everything = FileFilter::default();
    let everything = files.list(lab, &everything, ALL).await.expect("a list");
    let everything = everything.items;
    assert_eq!(everything.len(), of_all);
    for query in QUERIES {
        for extensions in EXTENSIONS {
            for instrument in [None, Some(rare)] {
                let filter = filter(instrument, extensions, query);
                let matching: Vec<&File> = everything
                    .iter()
                    .filter(|file| filter.matches(&file.path, file.attribution))
                    .collect();
                let mut page = first(20);
                for expected in matching.chunks(20).take(3) {
                    let found = files.list(lab, &filter, page).await.expect("a page");
                    let found_files: Vec<&File> = found.items.iter().collect();
                    assert_eq!(found_files, expected, "{filter:?}");
                    page.after = found.next;
                }
                let last = matching.len() <= 60;
                assert_eq!(page.after.is_none(), last, "{filter:?}");
            }
        }
    }
}

#[tokio::test]
async fn every_filter_finds_among_many_files_what_the_domain_says() {
    let postgres = Postgres::fresh().await;
    let (lab, rare) = stored(&postgres).await;
    let files = of_database(&postgres).with_search_limits(SearchLimits::default());
    assert_lists_are_right(&files, lab, rare, 6_000).await;
}

#[tokio::test]
async fn every_filter_finds_the_same_where_the_extension_cannot_be_created() {
    let (url, own) = managed_database().await;
    let behind = look_behind(own.url()).await;
    let name = own.url().rsplit_once('/').expect("a database's name").1;
    let disown = format!("ALTER DATABASE {name} OWNER TO CURRENT_USER");
    behind.batch_execute(&disown).await.expect("another owner");
    let database = Database::new(&url, DatabaseSettings::default()).expect("a pool");
    let search = prepare_file_search(&database).await.expect("an answer");
    let reason = "permission denied to create extension \"pg_trgm\"".to_owned();
    assert_eq!(search, FileSearch::Walk { reason });

    let postgres = Postgres::fresh().await;
    let (lab, rare) = stored(&postgres).await;
    let drop = "DROP EXTENSION pg_trgm CASCADE";
    look_behind(postgres.url())
        .await
        .batch_execute(drop)
        .await
        .expect("dropped");
    assert_lists_are_right(&of_database(&postgres), lab, rare, 6_000).await;
}

/// The extension may lie in a schema of the operator's choice.
#[tokio::test]
async fn the_index_is_created_by_the_next_server_once_the_extension_can_be() {
    let own = TestDatabase::new().await;
    let behind = look_behind(own.url()).await;
    let elsewhere = "DROP EXTENSION pg_trgm CASCADE; CREATE SCHEMA \"Their extensions\"; \
         CREATE EXTENSION pg_trgm SCHEMA \"Their extensions\"";
    behind
        .batch_execute(elsewhere)
        .await
        .expect("another schema");
    let database = Database::new(own.url(), DatabaseSettings::default()).expect("a pool");
    let (one, other) = tokio::join!(
        prepare_file_search(&database),
        prepare_file_search(&database)
    );
    for search in [one, other] {
        assert_eq!(search.expect("an answer"), FileSearch::Indexed);
    }
}

#[tokio::test]
async fn every_filter_finds_the_same_by_the_index() {
    let postgres = Postgres::fresh().await;
    let (lab, rare) = stored(&postgres).await;
    let files = of_database(&postgres);
    let client = look_behind(postgres.url()).await;
    assert_lists_are_right(&files, lab, rare, 6_000).await;
    let delete = "DELETE FROM labdata.file WHERE path_folded LIKE '%3_.csv'";
    client.batch_execute(delete).await.expect("deleted");
    let count = "SELECT count(*)::text FROM labdata.file f WHERE EXISTS (SELECT FROM \
         labdata.organization o WHERE o.id = f.organization_id AND o.name = 'ours')";
    let of_all: usize = texts(&client, count)
        .await
        .concat()
        .parse()
        .expect("a number");
    assert_lists_are_right(&files, lab, rare, of_all).await;
}

#[tokio::test]
async fn parts_of_many_files_are_found_among_the_oldest() {
    const INSERT: &str = "INSERT INTO labdata.file (id, organization_id, instrument_id, \
             source_type, status, original_path, file_name, path_folded, extension, path_hash, \
             content_type, object_key, size_bytes, crc32c, uploaded_at, created_at) \
         SELECT gen_random_uuid(), '{organization}', '{instrument}', 'manual_upload', 'confirmed', path, path, \
             path, NULL, sha256(path::bytea), 'text/csv', gen_random_uuid(), 1, 'AAAAAA==', \
             '2026-01-01Z'::timestamptz + n * interval '1 s', '2026-01-01Z' FROM generate_series(1, 20000) n, \
             LATERAL (SELECT concat(n, CASE WHEN n % 17 % 2 = 0 AND n < 19000 THEN 'x' END, \
                 CASE WHEN n % 13 % 2 = 0 AND n < 100 THEN 'y' END, \
                 CASE n WHEN 7 THEN '-abcd' ELSE '-abc-bcd' END) AS path) p";
    let postgres = Postgres::fresh().await;
    let lab = postgres.organization("lab").await.id;
    let instrument = postgres.instrument(lab, "reader").await.id;
    let insert = INSERT
        .replace("{organization}", &lab.to_string())
        .replace("{instrument}", &instrument.to_string());
    let client = look_behind(postgres.url()).await;
    client.batch_execute(&insert).await.expect("stored");
    let files = of_database(&postgres);
    let names = async |query: &str| {
        let filter = filter(None, "", query);
        let page = files.list(lab, &filter, first(3)).await.expect("a page");
        let paths = page.items.iter().map(|file| file.path.as_str());
        let names = paths.map(|path| path.split('-').next().unwrap_or_default().to_owned());
        names.collect::<Vec<_>>()
    };
    for organizations in 1..3 {
        assert_eq!(names("x").await, ["18999x", "18997x", "18995x"]);
        assert_eq!(names("xy").await, ["99xy", "97xy", "95xy"]);
        assert_eq!(names("yx").await, [""; 0]);
        // All files have its trigrams, and one has it.
        assert_eq!(names("abcd").await, ["7"], "{organizations}");
        // The index is asked for the organization only if there are several.
        postgres.organization("another lab").await;
    }
}

/// Lists that are read while others confirm and delete files, earlier ones among them, always show
/// the files that were there before.
#[tokio::test]
async fn lists_lose_nothing_while_others_confirm_and_delete() {
    const INSERT: &str = "INSERT INTO labdata.file (id, organization_id, instrument_id, \
             source_type, status, original_path, file_name, path_folded, extension, path_hash, \
             content_type, object_key, size_bytes, crc32c, uploaded_at, created_at) \
         SELECT gen_random_uuid(), i.organization_id, i.id, 'manual_upload', 'confirmed', path, path, \
             path, 'csv', sha256(path::bytea), 'text/csv', gen_random_uuid(), 1, 'AAAAAA==', \
             '2026-01-01Z'::timestamptz - (random() * 300 * 300) * interval '1 s', '2026-01-01Z' \
         FROM labdata.instrument i, generate_series(1, 50) n, \
             LATERAL (SELECT concat('noise/', gen_random_uuid(), n, '.csv') AS path) p \
         WHERE i.name = 'frequent'";
    const DELETE: &str = "DELETE FROM labdata.file WHERE id IN (SELECT id FROM labdata.file \
         WHERE path_folded LIKE 'noise/%' ORDER BY random() LIMIT 30)";
    let postgres = Postgres::fresh().await;
    let (lab, _) = stored(&postgres).await;
    let files = of_database(&postgres);
    let filters = ["_αβγ", "oldway", "zebra"].map(|query| filter(None, "", query));
    let mut expected = Vec::new();
    for filter in &filters {
        let page = files.list(lab, filter, first(100)).await.expect("a page");
        expected.push(page);
    }
    let writes = async {
        let client = look_behind(postgres.url()).await;
        for _ in 0..6 {
            client.batch_execute(INSERT).await.expect("stored");
            client.batch_execute(DELETE).await.expect("deleted");
        }
    };
    let reads = async {
        for _ in 0..30 {
            for (filter, expected) in filters.iter().zip(&expected) {
                let page = files.list(lab, filter, first(100)).await.expect("a page");
                assert_eq!(page.items, expected.items, "{filter:?}");
            }
        }
    };
    tokio::join!(writes, reads);
}

#[tokio::test]
async fn a_rare_part_of_a_name_is_found_by_the_index_and_no_list_reads_the_whole_table() {
    let postgres = Postgres::fresh().await;
    let (lab, rare) = stored(&postgres).await;
    let scans = "SELECT concat(seq_scan, ' ', (SELECT idx_scan > 0 FROM pg_stat_user_indexes \
         WHERE indexrelname = 'file_search_idx')) FROM pg_stat_user_tables WHERE relname = 'file'";
    let client = look_behind(postgres.url()).await;
    let files = of_database(&postgres);
    let sequential = |texts: Vec<String>| texts.concat().split(' ').next().map(str::to_owned);
    let before = sequential(texts(&client, scans).await);
    let page = first(50);
    for (instrument, extensions, query) in [
        (None, "", ""),
        (Some(rare), "", ""),
        (None, "gz,csv", ""),
        (Some(rare), "gz", ""),
        (None, "", "plate"),
        (None, "", "zebra"),
        (None, "", "z"),
        (Some(rare), "csv", "zebra"),
        (Some(rare), "gz,csv", "ze"),
    ] {
        let filter = filter(instrument, extensions, query);
        files.list(lab, &filter, page).await.expect("a page");
    }
    // PostgreSQL counts with a delay.
    loop {
        let now = texts(&client, scans).await;
        if now.concat().ends_with(" t") {
            assert_eq!(sequential(now), before);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
