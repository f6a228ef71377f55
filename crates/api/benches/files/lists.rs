//! Listings among few and many files.

use std::{
    io::Write,
    process::Command,
    time::{Duration, Instant},
};

use futures::future::join_all;

use crate::{
    Bench, median,
    support::{self, PlainConnection, Server},
};

const FEW: u32 = 1_000;
const MANY: u32 = 1_000_000;
/// Rounds in which few and many are measured in turn: a busy machine is slow for seconds at times.
const ROUNDS: usize = 10;
/// Requests of a round, after some that warm up.
const REQUESTS: usize = 40;
const WARM: usize = 10;
/// A round of slow requests ends here, after at least three.
const LONGEST: Duration = Duration::from_millis(500);
const CONNECTIONS: usize = 16;
/// Requests of one connection in a round.
const LOAD: usize = 400;

/// Files of two instruments, one of which has few; with a frequent extension and a rare one; with
/// parts that all names have, few, some ten, those of the oldest third, and numbers that are in one
/// each. Few are one of twenty in the first thousand, so that a list of 50 has 50 there as well (for
/// that some have a further number, and the few of the rare instrument an extension), and one of a
/// thousand after it. Ids begin with the time, as the platform makes them.
const INSERT: &str = "INSERT INTO labdata.file (id, organization_id, instrument_id, source_type, \
         status, original_path, file_name, path_folded, extension, path_hash, content_type, \
         object_key, size_bytes, crc32c, uploaded_at, created_at) \
     SELECT concat(lpad(to_hex(extract(epoch FROM at)::bigint * 1000), 12, '0'), '7', \
             right(replace(gen_random_uuid()::text, '-', ''), 19))::uuid, i.organization_id, i.id, 'manual_upload', \
         'confirmed', path, path, path, extension, sha256(convert_to(path, 'UTF8')), 'text/csv', \
         gen_random_uuid(), 1000, 'AAAAAA==', at, '2024-01-01Z' \
     FROM generate_series($1::int, $2::int) n \
     CROSS JOIN LATERAL (SELECT '2024-01-01Z'::timestamptz + n * interval '1 minute') uploaded (at) \
     CROSS JOIN LATERAL (SELECT n % CASE WHEN n <= 1000 THEN 20 ELSE 1000 END) few (place) \
     CROSS JOIN LATERAL (SELECT CASE place WHEN 7 THEN 'rare' ELSE 'frequent' END) o (instrument) \
     JOIN labdata.instrument i ON i.name = o.instrument \
     CROSS JOIN LATERAL (SELECT CASE WHEN place = 3 THEN 'fcs' \
         WHEN n % 7 = 0 OR n <= 1000 AND place = 7 THEN 'xlsx' ELSE 'csv' END) \
         e (extension) \
     CROSS JOIN LATERAL (SELECT concat('runs/2026-', lpad((n % 12 + 1)::text, 2, '0'), '/plate_', \
         lpad(n::text, 7, '0'), CASE WHEN place = 3 THEN '_flow' END, \
         CASE WHEN n % 100000 = 4242 OR n <= 10 THEN '_µ' END, \
         CASE WHEN n <= 1000 AND place = 5 THEN '-12377' END, \
         CASE WHEN n <= 300 OR n BETWEEN 1001 AND 300000 THEN '-q' END, '.', extension)) p (path)";

pub(crate) async fn run(bench: &Bench) {
    let few = Bench {
        server: Server::start(&[]).await,
    };
    let (few_filters, many_filters) = (filled(&few).await, filled(bench).await);
    let database = bench.server.database().await;
    fill(&database).await;
    let names = few_filters.iter().map(|(name, asked, _)| (*name, *asked));
    let queries = |filters: &[(_, _, String)]| {
        let queries = filters.iter().map(|(_, _, query)| query.clone());
        queries.collect::<Vec<_>>()
    };
    let (few_queries, many_queries) = (queries(&few_filters), queries(&many_filters));
    let medians = measure([(&few, few_queries), (bench, many_queries)]).await;
    few.server.stop().await;
    println!("p50 of 50 files at one connection, of {FEW} and of {MANY}, and asked of the latter:");
    for ((name, asked), [few, many]) in names.zip(medians) {
        println!("  {name:28} {few:6.2} ms  {many:7.2} ms  <= {asked} ms");
    }
    for protocol in ["simple", "prepared"] {
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            ours.push(rate(bench).await);
            floor.push(pgbench(bench, &database, protocol).await);
        }
        let (ours, floor) = (support::median(ours), support::median(floor));
        println!(
            "at {CONNECTIONS} connections: {ours:.0} lists/s, pgbench with the same SELECT, {protocol}: \
             {floor:.0}/s: {:.2} (>= 0.4)",
            ours / floor
        );
    }
}

/// Stores few files. Returns the filters: name, p50 asked of many files in milliseconds, query.
async fn filled(bench: &Bench) -> Vec<(&'static str, u32, String)> {
    let frequent = bench.instrument("frequent").await;
    let rare = bench.instrument("rare").await;
    let database = bench.server.database().await;
    let last = i32::try_from(FEW).unwrap();
    database.execute(INSERT, &[&1_i32, &last]).await.unwrap();
    let analyze = "VACUUM ANALYZE labdata.file";
    database.batch_execute(analyze).await.unwrap();
    filters(&frequent, &rare)
}

fn filters(frequent: &str, rare: &str) -> Vec<(&'static str, u32, String)> {
    vec![
        ("all", 2, String::new()),
        (
            "instrument, frequent",
            2,
            format!("instrument_id={frequent}"),
        ),
        ("instrument, rare", 2, format!("instrument_id={rare}")),
        ("extension, frequent", 2, "extensions=csv".to_owned()),
        ("extension, rare", 2, "extensions=.FCS".to_owned()),
        ("two extensions", 2, "extensions=fcs,xlsx".to_owned()),
        ("query, all", 6, "query=Plate".to_owned()),
        ("query, 1 of 12", 6, "query=2026-03".to_owned()),
        ("query, 1 of 200", 60, "query=123".to_owned()),
        ("query, few", 60, "query=_FLOW".to_owned()),
        ("query, one file", 60, "query=late_0000500".to_owned()),
        ("query, no file", 60, "query=zebra".to_owned()),
        ("query, old files", 60, "query=-q.".to_owned()),
        ("1 character, all", 6, "query=p".to_owned()),
        ("1 character, old files", 1_000, "query=q".to_owned()),
        ("1 character, some ten", 1_000, "query=%C2%B5".to_owned()),
        ("1 character, no file", 1_000, "query=%25".to_owned()),
        ("2 characters, all", 6, "query=_0".to_owned()),
        ("2 characters, 1 of 15", 6, "query=77".to_owned()),
        ("2 characters, few", 1_000, "query=_f".to_owned()),
        ("2 characters, some ten", 1_000, "query=_%C2%B5".to_owned()),
        ("2 characters, no file", 1_000, "query=zz".to_owned()),
        (
            "instrument, extension",
            2,
            format!("instrument_id={frequent}&extensions=fcs"),
        ),
        (
            "instrument, query",
            60,
            format!("instrument_id={frequent}&query=late_0000500"),
        ),
        (
            "extension, query",
            6,
            "extensions=csv&query=2026-03".to_owned(),
        ),
        (
            "instrument, query of others",
            60,
            format!("instrument_id={rare}&query=flow"),
        ),
        (
            "extension, query of others",
            60,
            "extensions=fcs&query=.csv".to_owned(),
        ),
        (
            "instrument, 1 character",
            1_000,
            format!("instrument_id={frequent}&query=%C2%B5"),
        ),
        (
            "extension, 2 characters",
            1_000,
            "extensions=csv&query=-q".to_owned(),
        ),
        (
            "all three",
            6,
            format!("instrument_id={frequent}&extensions=csv&query=plate"),
        ),
        (
            "all three, rare",
            6,
            format!("instrument_id={rare}&extensions=xlsx,fcs&query=00"),
        ),
    ]
}

/// Adds the files that make many of few.
async fn fill(database: &tokio_postgres::Client) {
    // Indexes are built faster than filled, and what is inserted is right.
    let indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'labdata' \
         AND tablename = 'file' AND indexname LIKE '%_idx'";
    let indexes = database.query(indexes, &[]).await.unwrap();
    for index in &indexes {
        let drop = format!("DROP INDEX labdata.{}", index.get::<_, String>(0));
        database.batch_execute(&drop).await.unwrap();
    }
    let settings = "SET session_replication_role = replica; SET maintenance_work_mem = '512MB'";
    database.batch_execute(settings).await.unwrap();
    let place = |number: u32| i32::try_from(number).unwrap();
    database
        .execute(INSERT, &[&place(FEW + 1), &place(MANY)])
        .await
        .unwrap();
    let start = Instant::now();
    for index in &indexes {
        let definition: String = index.get(1);
        database.batch_execute(&definition).await.unwrap();
    }
    let size = "SELECT pg_relation_size('labdata.file_search_idx') / 1048576";
    let size: i64 = database.query_one(size, &[]).await.unwrap().get(0);
    println!(
        "all indexes were built in {:.0} s; the one for searches has {size} MB",
        start.elapsed().as_secs_f64()
    );
    database
        .batch_execute("SET session_replication_role = origin")
        .await
        .unwrap();
    // What this has left to be written would be written while lists are timed.
    for rest in ["VACUUM ANALYZE", "CHECKPOINT"] {
        database.batch_execute(rest).await.unwrap();
    }
}

async fn get(client: &mut PlainConnection, query: &str) -> Duration {
    let start = Instant::now();
    client.get(&format!("/files?limit=50&{query}")).await;
    start.elapsed()
}

/// The medians of each query on two servers, in milliseconds.
async fn measure(servers: [(&Bench, Vec<String>); 2]) -> Vec<[f64; 2]> {
    let mut clients = Vec::new();
    for (bench, queries) in servers {
        clients.push((bench.server.plain_connection().await, queries));
    }
    let queries = clients[0].1.len();
    let mut taken = vec![[const { Vec::new() }; 2]; queries];
    for _ in 0..ROUNDS {
        for (which, taken) in taken.iter_mut().enumerate() {
            for ((client, queries), taken) in clients.iter_mut().zip(taken) {
                let (start, before) = (Instant::now(), taken.len());
                for request in 0..WARM + REQUESTS {
                    let is_slow = start.elapsed() > LONGEST;
                    if is_slow && taken.len() > before {
                        break;
                    }
                    let time = get(client, &queries[which]).await;
                    if is_slow || request >= WARM {
                        taken.push(time);
                    }
                }
            }
        }
    }
    let medians = |taken: [Vec<Duration>; 2]| taken.map(|taken| median(&taken));
    taken.into_iter().map(medians).collect()
}

/// Lists per second over all connections.
async fn rate(bench: &Bench) -> f64 {
    let clients = (0..CONNECTIONS).map(|_| bench.server.plain_connection());
    let mut clients = join_all(clients).await;
    join_all(clients.iter_mut().map(|client| get(client, ""))).await;
    let start = Instant::now();
    join_all(clients.iter_mut().map(async |client| {
        for _ in 0..LOAD {
            get(client, "").await;
        }
    }))
    .await;
    f64::from(u32::try_from(CONNECTIONS * LOAD).unwrap()) / start.elapsed().as_secs_f64()
}

/// Transactions per second of pgbench with the list's SELECT.
async fn pgbench(bench: &Bench, database: &tokio_postgres::Client, protocol: &str) -> f64 {
    let organization = "SELECT organization_id::text FROM labdata.instrument WHERE name = 'rare'";
    let organization: String = database.query_one(organization, &[]).await.unwrap().get(0);
    let mut script = tempfile::NamedTempFile::new().unwrap();
    writeln!(
        script,
        "SELECT id, instrument_id, job_execution_id, source_type, status, original_path, content_type, \
         object_key, upload_expires_at, size_bytes, crc32c, uploaded_at, file_created_at, created_at \
         FROM labdata.file WHERE uploaded_at IS NOT NULL AND organization_id = '{organization}' \
         ORDER BY uploaded_at DESC, id DESC LIMIT 51;"
    )
    .unwrap();
    let output = Command::new("pgbench")
        .args([
            "-n",
            "-M",
            protocol,
            "-T",
            "4",
            "-j",
            "2",
            "-c",
            &CONNECTIONS.to_string(),
            "-f",
        ])
        .arg(script.path())
        .arg(bench.server.database_url())
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    let tps = reported
        .lines()
        .find_map(|line| line.strip_prefix("tps = "));
    tps.unwrap().split(' ').next().unwrap().parse().unwrap()
}
