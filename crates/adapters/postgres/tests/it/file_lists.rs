//! Listings among many files.

use labdata_domain::{
    files::{ExtensionFilter, File, FileFilter, FilePath, NameQuery},
    ids::{InstrumentId, OrganizationId},
};
use labdata_port_contracts::{
    Harness,
    fixtures::{Instruments, Tenants},
    paging::{ALL, first},
};
use labdata_ports::files::FileRepository;
use labdata_postgres::{Database, DatabaseSettings, PgFileRepository, Segments};
use time::OffsetDateTime;

use crate::{contracts::Postgres, look_behind, texts};

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
        .batch_execute("ANALYZE labdata.file")
        .await
        .expect("analyzed");
    ours.expect("two organizations")
}

fn filter(instrument: Option<InstrumentId>, extensions: &str, query: &str) -> FileFilter {
    FileFilter {
        instrument,
        extensions: ExtensionFilter::parse(extensions),
        query: NameQuery::parse(query).expect("a query"),
    }
}

/// Segments so short that there are many.
const SHORT: Segments = Segments {
    unindexed: 100,
    files: 512,
};

/// A time after all of the files.
const LATER: OffsetDateTime = time::macros::datetime!(2027-01-01 0:00 UTC);

const QUERIES: [&str; 12] = [
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
];
const EXTENSIONS: [&str; 6] = ["", "csv", "tar.gz", "gz,csv", "tar.gz,csv", "none"];

fn of_database(postgres: &Postgres) -> PgFileRepository {
    let database = Database::new(postgres.url(), DatabaseSettings::default()).expect("a pool");
    PgFileRepository::new(database).with_segments(SHORT)
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
                    .filter(|file| filter.matches(&file.path, file.attribution.instrument()))
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
    assert_lists_are_right(&of_database(&postgres), lab, rare, 6_000).await;
}

#[tokio::test]
async fn every_filter_finds_the_same_by_the_index() {
    let postgres = Postgres::fresh().await;
    let (lab, rare) = stored(&postgres).await;
    let files = of_database(&postgres);
    let client = look_behind(postgres.url()).await;
    // Some in segments, some not, and some of either deleted since.
    let before = time::macros::datetime!(2025-12-31 23:59 UTC);
    files.index_new(before).await.expect("indexed");
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
    // The rest is taken in, and segments of which much was deleted are built anew.
    files.index_new(LATER).await.expect("indexed");
    let left = "SELECT organization_id::text FROM labdata.file_unindexed \
         GROUP BY organization_id HAVING count(*) > 100";
    assert_eq!(texts(&client, left).await, [""; 0]);
    assert_lists_are_right(&files, lab, rare, of_all).await;
}

#[tokio::test]
async fn segments_of_which_much_was_deleted_are_built_anew() {
    let postgres = Postgres::fresh().await;
    let (lab, rare) = stored(&postgres).await;
    let files = of_database(&postgres);
    let client = look_behind(postgres.url()).await;
    files.index_new(LATER).await.expect("indexed");
    let delete =
        "DELETE FROM labdata.file WHERE path_folded LIKE '%oldway%' OR path_folded LIKE '%1.csv'";
    client.batch_execute(delete).await.expect("deleted");
    files.index_new(LATER).await.expect("indexed");
    let dead = "SELECT s.id::text FROM labdata.file_segment s WHERE 8 * ( \
         SELECT count(*) FROM labdata.file_segment_page p, unnest(p.file_ids) file_id \
         WHERE p.organization_id = s.organization_id AND p.segment_id = s.id \
         AND NOT EXISTS (SELECT FROM labdata.file f WHERE f.id = file_id)) >= s.files";
    assert_eq!(texts(&client, dead).await, [""; 0]);
    let of_all = "SELECT (count(*) / 2)::text FROM labdata.file";
    let of_all: usize = texts(&client, of_all)
        .await
        .concat()
        .parse()
        .expect("a number");
    assert_lists_are_right(&files, lab, rare, of_all).await;
}

#[tokio::test]
async fn words_of_many_files_of_a_long_segment_are_found() {
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
    let files = of_database(&postgres).with_segments(Segments::default());
    assert_eq!(files.index_new(LATER).await.expect("indexed"), 20_000);
    let names = async |query: &str| {
        let filter = filter(None, "", query);
        let page = files.list(lab, &filter, first(3)).await.expect("a page");
        let paths = page.items.iter().map(|file| file.path.as_str());
        let names = paths.map(|path| path.split('-').next().unwrap_or_default().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("x").await, ["18999x", "18997x", "18995x"]);
    assert_eq!(names("xy").await, ["99xy", "97xy", "95xy"]);
    assert_eq!(names("yx").await, [""; 0]);
    // All files have its words, and one has it.
    assert_eq!(names("abcd").await, ["7"]);
}

#[tokio::test]
async fn what_is_known_of_segments_is_not_read_again_until_others_stand() {
    let postgres = Postgres::fresh().await;
    let (lab, _) = stored(&postgres).await;
    let client = look_behind(postgres.url()).await;
    let files = of_database(&postgres);
    files.index_new(LATER).await.expect("indexed");
    let paths = async |query: &str| {
        let filter = filter(None, "", query);
        let page = files.list(lab, &filter, first(100)).await.expect("a page");
        page.items
            .into_iter()
            .map(|file| file.path)
            .collect::<Vec<_>>()
    };
    let queries = ["_αβγ", "oldway", "zebra", "plate"];
    let mut before = Vec::new();
    for query in queries {
        before.push(paths(query).await);
    }
    let hide = "ALTER TABLE labdata.file_posting RENAME TO hidden_posting; \
         ALTER TABLE labdata.file_segment_page RENAME TO hidden_page";
    client.batch_execute(hide).await.expect("hidden");
    for (query, before) in queries.iter().zip(&before) {
        assert_eq!(&paths(query).await, before, "{query}");
    }
    let show = "ALTER TABLE labdata.hidden_posting RENAME TO file_posting; \
         ALTER TABLE labdata.hidden_page RENAME TO file_segment_page";
    client.batch_execute(show).await.expect("shown");
    // Another server builds most segments anew, so that other files are in their positions.
    let delete =
        "DELETE FROM labdata.file WHERE path_folded LIKE '%3%' OR path_folded LIKE '%zebra%'";
    client.batch_execute(delete).await.expect("deleted");
    of_database(&postgres)
        .index_new(LATER)
        .await
        .expect("indexed");
    for (query, before) in queries.iter().zip(before) {
        let found = paths(query).await;
        let left =
            |path: &FilePath| !path.as_str().contains('3') && !path.as_str().contains("zebra");
        let left: Vec<FilePath> = before.into_iter().filter(left).collect();
        assert!(found.starts_with(&left), "{query}");
        assert!(
            found.iter().all(|path| path.as_str().contains(query)),
            "{query}"
        );
        assert!(!found.is_empty() || *query == "zebra", "{query}");
    }
}

/// Lists that are read while others confirm and delete files, earlier ones among them, and while two
/// servers index them, always show the files that were there before.
#[tokio::test]
async fn lists_lose_nothing_while_segments_are_replaced() {
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
    let servers = [of_database(&postgres), of_database(&postgres)];
    let indexing = async |files: &PgFileRepository| {
        for _ in 0..4 {
            files.index_new(LATER).await.expect("indexed");
            tokio::task::yield_now().await;
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
    tokio::join!(writes, indexing(&servers[0]), indexing(&servers[1]), reads);
    files.index_new(LATER).await.expect("indexed");
    let client = look_behind(postgres.url()).await;
    // Every file is in one place, and segments are apart.
    let misplaced = "WITH segment AS (SELECT * FROM labdata.file_segment), \
         known AS (SELECT file_id FROM segment s JOIN labdata.file_segment_page p \
             ON p.organization_id = s.organization_id AND p.segment_id = s.id, unnest(p.file_ids) file_id \
         UNION ALL SELECT id FROM labdata.file_unindexed) \
         SELECT f.id::text FROM labdata.file f WHERE (SELECT count(*) FROM known k WHERE k.file_id = f.id) <> 1 \
         UNION ALL SELECT concat(one.id, ' overlaps ', other.id) FROM segment one JOIN segment other \
         ON one.organization_id = other.organization_id AND one.id <> other.id \
         AND (one.newest_at, one.newest_id) BETWEEN (other.oldest_at, other.oldest_id) \
             AND (other.newest_at, other.newest_id)";
    assert_eq!(texts(&client, misplaced).await, [""; 0]);
}

#[tokio::test]
async fn a_rare_part_of_a_name_is_found_by_the_index_and_no_list_reads_the_whole_table() {
    let postgres = Postgres::fresh().await;
    let (lab, rare) = stored(&postgres).await;
    let scans = "SELECT concat(seq_scan, ' ', (SELECT idx_scan > 0 FROM pg_stat_user_indexes \
         WHERE indexrelname = 'file_posting_pkey')) FROM pg_stat_user_tables WHERE relname = 'file'";
    let client = look_behind(postgres.url()).await;
    let files = of_database(&postgres);
    files.index_new(LATER).await.expect("indexed");
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
