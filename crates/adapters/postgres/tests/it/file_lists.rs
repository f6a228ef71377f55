//! Listings among many files.

use labdata_domain::{
    file::{ExtensionFilter, File, FileFilter, NameQuery},
    ids::{InstrumentId, OrganizationId},
    page::PageRequest,
};
use labdata_port_contracts::{
    Harness, Subject,
    fixtures::{Instruments, Tenants},
};
use labdata_ports::files::FileRepository;

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

#[tokio::test]
async fn every_filter_finds_among_many_files_what_the_domain_says() {
    let postgres = Postgres::fresh().await;
    let (lab, rare) = stored(&postgres).await;
    let files = Subject::<dyn FileRepository>::subject(&postgres);
    let all = PageRequest {
        limit: None,
        after: None,
    };
    let everything = files
        .list(lab, &FileFilter::default(), all)
        .await
        .expect("a list")
        .items;
    assert_eq!(everything.len(), 6_000);
    let queries = [
        "",
        "plate",
        "zebra",
        "_αβγ",
        "oldway",
        "00007",
        "plate_03",
        "e_0",
        "7",
        "β",
        "_o",
        "no such",
        "%",
        "plate_00007_zebra_oldway",
    ];
    for query in queries {
        for extensions in ["", "csv", "gz", "tar.gz", "gz,csv", "tar.gz,csv", "none"] {
            for instrument in [None, Some(rare)] {
                let filter = filter(instrument, extensions, query);
                let matching: Vec<&File> = everything
                    .iter()
                    .filter(|file| filter.matches(&file.path, file.attribution.instrument()))
                    .collect();
                let mut page = PageRequest {
                    limit: Some(20),
                    after: None,
                };
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
async fn a_rare_part_of_a_name_is_found_by_the_index_and_no_list_reads_the_whole_table() {
    let postgres = Postgres::fresh().await;
    let (lab, rare) = stored(&postgres).await;
    let scans = "SELECT concat(seq_scan, ' ', (SELECT idx_scan > 0 FROM pg_stat_user_indexes \
         WHERE indexrelname = 'file_keys_idx')) FROM pg_stat_user_tables WHERE relname = 'file'";
    let client = look_behind(postgres.url()).await;
    let sequential = |texts: Vec<String>| texts.concat().split(' ').next().map(str::to_owned);
    let before = sequential(texts(&client, scans).await);
    let files = Subject::<dyn FileRepository>::subject(&postgres);
    let page = PageRequest {
        limit: Some(50),
        after: None,
    };
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
