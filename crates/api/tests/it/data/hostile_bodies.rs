//! A thousand data writes with damaged bodies: each is answered as the contract says, and what is
//! refused leaves nothing behind.

use std::{collections::BTreeMap, ops::Range};

use labdata_postgres::DatabaseSettings;
use serde_json::json;

use crate::on_postgres::{OnPostgres, WRITE};

/// Number of bodies sent.
const BODIES: usize = 1_000;
/// Seed of the generator; another seed makes other bodies.
const SEED: u64 = 20_260_101;

/// Valid bodies; `NEW` becomes a number that no other body has.
const VALID: [&str; 5] = [
    r#"{"tables":[{"table":"sample","rows":[{"_ref":"a","name":"aNEW","volume":1.5},{"name":"bNEW","parent":"@a","note":"n"}]},{"table":"measurement","rows":[{"sample":"@a","value":2},{"sample":{"name":"first"},"value":null}]}],"series":[{"table":"curve","parent":"@a","columns":{"od":[0.1,0.2,null],"order":[0,1,5]}}],"return_rows":true}"#,
    r#"{"tables":[{"table":"thing","rows":[{"number":NEW,"t":"text","i":-7,"f":1e-3,"b":true,"w":"2026-01-01T00:00:00.5+02:00","d":"2026-02-28","u":"0190d3a4-5b6c-7d8e-9f00-112233445566","j":{"a":[1,{"b":null}]},"other":1}]}],"job_name":"a job"}"#,
    r#"{"tables":[{"table":"sample","mode":"upsert","key":["name"],"on_match":"fill_missing","rows":[{"name":"first","volume":3},{"_ref":"x","name":"cNEW","parent":{"name":"first"}}]},{"table":"sample","mode":"update","key":["name"],"rows":[{"name":"first","note":"é\n😀"}]}],"dry_run":false}"#,
    r#"{"tables":[{"table":"sample","rows":[{"id":"idNEW","name":"dNEW"}]},{"table":"measurement","rows":[{"sample":"idNEW"}]},{"table":"sample","mode":"delete","cascade":true,"rows":[{"id":"idNEW"}]}],"series":[{"table":"points","parent":1,"parent_column":"thing","columns":{"i":[1,2],"t":["a",null],"w":["2026-01-01T00:00:00Z",null],"j":[{},[]],"b":[true,null]}}]}"#,
    r#"{"tables":[],"series":[{"table":"curve","parent":"first","columns":{"od":[1,2,3.5]}},{"table":"curve","parent":{"name":"second"},"parent_column":"sample","columns":{"od":[]}}],"dry_run":true}"#,
];

/// Replacements for a value of a body.
const TOKENS: [&str; 44] = [
    "1e999",
    "-1e999",
    "1e-999",
    "NaN",
    "Infinity",
    "-0",
    "-0.0",
    "0.1e1",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "123456789012345678901234567890",
    "1.7976931348623157e308",
    "null",
    "true",
    "[]",
    "{}",
    "[null]",
    "[[1]]",
    "{\"a\":{\"b\":[]}}",
    "{\"name\":\"first\"}",
    "\"\"",
    "\"@\"",
    "\"@a\"",
    "\"@x\"",
    "\"a\\u0000b\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\ud83d\\ude00\"",
    "\"\\uffff\"",
    "\"9999-12-31T23:59:59.999999999Z\"",
    "\"-4713-11-24T00:00:00Z\"",
    "\"+10000-01-01T00:00:00Z\"",
    "\"2026-02-30\"",
    "\"0000-01-01\"",
    "\"0001-01-01T00:00:00+23:59\"",
    "\"_ref\"",
    "\"id\"",
    "\"created_at\"",
    "\"ctid\"",
    "\"insert\"",
    "\"delete\"",
    "\"sample\"",
];

/// A small generator (splitmix64): the same bodies on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a limit, which is not 0.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    fn of<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }

    /// A part of a body.
    fn part(&mut self, length: usize) -> Range<usize> {
        let from = self.below(length + 1);
        from..from + self.below((length - from).min(60) + 1)
    }
}

/// Positions of the strings, numbers and words of a body.
fn tokens(body: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < body.len() {
        let from = at;
        at += 1;
        match body[from] {
            b'"' => {
                while at < body.len() && body[at] != b'"' {
                    at += if body[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(body.len());
                found.push(from..at);
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'-' => {
                while at < body.len() && !b",:]}\" ".contains(&body[at]) {
                    at += 1;
                }
                found.push(from..at);
            }
            _ => {}
        }
    }
    found
}

/// Damages a body once.
fn damage(body: &mut Vec<u8>, random: &mut Random) {
    if body.is_empty() {
        body.push(b'{');
    }
    let at = random.below(body.len());
    match random.below(32) {
        0 => body[at] ^= 1 << random.below(8),
        1 => body[at] = random.next().to_le_bytes()[0],
        2 => body.truncate(at),
        3 => {
            let part = random.part(body.len());
            let copy = body[part.clone()].to_vec();
            body.splice(part.end..part.end, copy);
        }
        4 => {
            let part = random.part(body.len());
            body.drain(part);
        }
        5 => {
            let depth = *random.of(&[5, 127, 128, 200, 50_000]);
            let open = random.of(&["[", "{\"a\":"]).repeat(depth);
            body.splice(at..at, open.into_bytes());
        }
        6 => {
            let bytes: &[u8] = random.of::<&[u8]>(&[
                b"\xff",
                b"\xed\xa0\x80",
                b"\xc0\x80",
                b"\x00",
                b"\xef\xbb\xbf",
                b"\\",
                b"\"",
            ]);
            body.splice(at..at, bytes.iter().copied());
        }
        7 => {
            let all = tokens(body);
            if all.is_empty() {
                return;
            }
            let (one, other) = (random.of(&all).clone(), random.of(&all).clone());
            let copy = body[other].to_vec();
            body.splice(one, copy);
        }
        // Mostly bodies that are JSON still: values become others, and now and then a name does.
        kind => {
            let mut all = tokens(body);
            if kind > 8 {
                all.retain(|token| body.get(token.end) != Some(&b':'));
            }
            if all.is_empty() {
                return;
            }
            let one = random.of(&all).clone();
            let token = if random.below(12) == 0 {
                format!("{0}1{1}", "[".repeat(140), "]".repeat(140))
            } else {
                (*random.of(&TOKENS)).to_owned()
            };
            body.splice(one, token.into_bytes());
        }
    }
}

async fn lab() -> OnPostgres {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let columns = |first: serde_json::Value| {
        json!([first,
            { "name": "t", "data_type": "text" }, { "name": "i", "data_type": "integer" },
            { "name": "f", "data_type": "float" }, { "name": "b", "data_type": "boolean" },
            { "name": "w", "data_type": "datetime" }, { "name": "d", "data_type": "date" },
            { "name": "u", "data_type": "uuid" }, { "name": "j", "data_type": "json" },
        ])
    };
    let number = json!({ "name": "number", "data_type": "integer", "is_primary_key": true, "is_nullable": false });
    let mut things = columns(number);
    let other = json!({ "name": "other", "data_type": "integer", "references": "thing" });
    things.as_array_mut().unwrap().push(other);
    lab.define(
        "thing",
        json!({ "semantic_category": "curated", "columns": things }),
    )
    .await;
    let thing = json!({ "name": "thing", "data_type": "integer", "references": "thing" });
    lab.define(
        "points",
        json!({ "semantic_category": "raw", "columns": columns(thing) }),
    )
    .await;
    lab.insert(
        "sample",
        json!([{ "id": "first", "name": "first" }, { "name": "second" }]),
    )
    .await;
    lab.insert("thing", json!([{ "number": 1 }])).await;
    lab
}

/// Counts the rows of all tables of the database.
async fn count_all(client: &tokio_postgres::Client) -> i64 {
    let tables = client
        .query(
            "SELECT format('(SELECT count(*) FROM %I.%I)', n.nspname, c.relname) FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')",
            &[],
        )
        .await
        .unwrap();
    let sums: Vec<String> = tables.iter().map(|row| row.get(0)).collect();
    let query = format!("SELECT ({})::bigint", sums.join(" + "));
    client.query_one(&query, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_thousand_damaged_bodies_are_answered_and_what_is_refused_leaves_nothing_behind() {
    let lab = lab().await;
    let behind = lab.look_behind().await;
    let mut random = Random(SEED);
    let mut responses: BTreeMap<u16, usize> = BTreeMap::new();
    let mut stored = count_all(&behind).await;
    for number in 0..BODIES {
        let valid = VALID[number % VALID.len()].replace("NEW", &(1000 + number).to_string());
        let mut body = valid.into_bytes();
        if number >= VALID.len() {
            for _ in 0..=random.below(2) {
                damage(&mut body, &mut random);
            }
        }
        if number % 250 == 249 {
            body.resize(4_718_592 + number % 3, b' ');
        }
        let displayed = String::from_utf8_lossy(&body[..body.len().min(2_000)]).into_owned();
        let reply = lab.client.post_raw(WRITE, body).await;
        let status = reply.status.as_u16();
        assert!(
            [200, 400, 413, 422].contains(&status),
            "body {number}: {status} {}\n{displayed}",
            reply.text
        );
        *responses.entry(status).or_default() += 1;
        let now = count_all(&behind).await;
        if status != 200 {
            assert_eq!(
                now, stored,
                "body {number} ({status}) left something\n{displayed}"
            );
        }
        stored = now;
        assert!(number >= VALID.len() || status == 200, "{}", reply.text);
    }
    let at_least = |status, least| responses.get(&status).is_some_and(|count| *count >= least);
    assert!(
        at_least(200, 50) && at_least(400, 200) && at_least(413, 4) && at_least(422, 200),
        "the bodies no longer try every way: {responses:?}"
    );
}
