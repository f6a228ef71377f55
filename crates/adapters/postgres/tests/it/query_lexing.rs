//! The screen of queries and PostgreSQL's own scanner read the same words, with any quotes, escapes,
//! comments and line breaks stand around them.

use labdata_domain::data::query::QueryText;
use tokio_postgres::Client;

use crate::{look_behind, query_lab::QueryLab, random::Random};

/// A name that the screen refuses wherever it stands as a name.
const FORBIDDEN: &str = "pg_authid";

/// Parts of random queries.
struct Parts {
    /// Delimiters of strings, names and comments.
    enclosures: &'static [(&'static str, &'static str)],
    /// Text that may stand within, and ends, escapes or begins something else.
    contents: &'static [&'static str],
    /// Separators.
    separators: &'static [&'static str],
}

/// Strings that escape and continue.
const STRINGS: Parts = Parts {
    enclosures: &[("'", "'"), ("e'", "'"), ("u&'", "'")],
    contents: &[FORBIDDEN, "'", "''", "\\", "\\'", "\n"],
    separators: &["\n", "\n", "\r", " ", "--\n", ",", ",", FORBIDDEN],
};

/// Everything that PostgreSQL's scanner tells apart.
const ALL: Parts = Parts {
    enclosures: ENCLOSURES,
    contents: CONTENTS,
    separators: SEPARATORS,
};

const ENCLOSURES: &[(&str, &str)] = &[
    ("'", "'"),
    ("e'", "'"),
    ("E'", "'"),
    ("u&'", "'"),
    ("U&'", "'"),
    ("b'", "'"),
    ("x'", "'"),
    ("n'", "'"),
    ("\"", "\""),
    ("u&\"", "\""),
    ("$$", "$$"),
    ("$a$", "$a$"),
    ("/*", "*/"),
    ("--", "\n"),
    ("--", "\r"),
];

const CONTENTS: &[&str] = &[
    FORBIDDEN, FORBIDDEN, "'", "''", "\\", "\\'", "\\\\", "\"", "$$", "$a$", "/*", "*/", "--",
    "\n", " ", ",", "(", ")", "a", "é", "1", "%s", "%%",
];

const SEPARATORS: &[&str] = &[
    "",
    "",
    " ",
    "\n",
    "\n",
    "\r",
    "\t\n ",
    "\u{b}",
    "\u{c}",
    ",",
    ", ",
    "--\n",
    " -- '\n",
    "/**/",
    "(",
    ")",
    "::",
    ".",
    "+",
    "-",
    "/",
    "*",
    "||",
    "%s",
    "%%",
    "%",
    "$1",
    "$",
    "1",
    "1_",
    "1e",
    "0x",
    "_",
    "a",
    "e",
    "E",
    "u&",
    "é",
    " uescape ",
    "\u{a0}",
    FORBIDDEN,
];

/// Prefix behind which every token is a syntax error.
const PREFIX: &str = "show all\n";

/// PostgreSQL's reading of a text.
struct Reading {
    /// Its tokens, as they are written, to the first that the scanner refuses.
    tokens: Vec<String>,
    is_whole: bool,
}

/// Reads a text with PostgreSQL's scanner, token by token: behind [`PREFIX`] the parser stops at the
/// first token, and its message holds that token's text and position.
async fn read(server: &Client, text: &str) -> Reading {
    let (mut tokens, mut rest) = (Vec::new(), text);
    loop {
        let Err(error) = server.prepare(&format!("{PREFIX}{rest}")).await else {
            return Reading {
                tokens,
                is_whole: true,
            };
        };
        let error = error.as_db_error().expect("an error of the server");
        let near = error
            .message()
            .strip_prefix("syntax error at or near \"")
            .and_then(|near| near.strip_suffix('"'));
        let Some(token) = near else {
            return Reading {
                tokens,
                is_whole: false,
            };
        };
        let position = match error.position() {
            Some(tokio_postgres::error::ErrorPosition::Original(position)) => *position,
            other => panic!("{text:?}: {other:?}"),
        };
        let characters = usize::try_from(position).expect("a position") - 1 - PREFIX.len();
        let start = rest.char_indices().nth(characters).expect("a character").0;
        let read = rest.get(start..).expect("a boundary");
        assert!(read.starts_with(token), "{text:?}: {token:?} at {start}");
        tokens.push(token.to_owned());
        rest = read.get(token.len()..).expect("a boundary");
    }
}

fn one_of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    *all.get(random.below(all.len())).expect("one of them")
}

/// A query of strings, names and comments that are mostly closed, with anything between them.
fn random_query(random: &mut Random, parts: &Parts) -> String {
    let mut text = "select ".to_owned();
    for _ in 0..=random.below(4) {
        let (begin, end) = one_of(random, parts.enclosures);
        text.push_str(begin);
        for _ in 0..random.below(4) {
            text.push_str(one_of(random, parts.contents));
        }
        // One in eight has no end, or that of another.
        if random.below(8) > 0 {
            text.push_str(end);
        }
        for _ in 0..=random.below(2) {
            text.push_str(one_of(random, parts.separators));
        }
    }
    text
}

/// Asserts that a query which the screen lets through holds no forbidden name, closes its
/// parentheses, and has the counted parameters, as PostgreSQL reads it. Returns the number of tokens.
async fn assert_read_alike(server: &Client, text: &str) -> usize {
    let Ok(query) = QueryText::parse(text) else {
        return 0;
    };
    let Reading { tokens, is_whole } = read(server, query.as_str()).await;
    let (mut depth, mut highest) = (0_usize, 0_usize);
    for token in &tokens {
        let name = token.trim_matches('"').to_ascii_lowercase();
        assert_ne!(name, FORBIDDEN, "{text:?} is read as {tokens:?}");
        match token.as_str() {
            "(" => depth += 1,
            ")" => {
                let closed = depth.checked_sub(1);
                depth = closed.unwrap_or_else(|| panic!("{text:?} is read as {tokens:?}"));
            }
            other => {
                let number = other.strip_prefix('$').and_then(|it| it.parse().ok());
                highest = highest.max(number.unwrap_or_default());
            }
        }
    }
    if !is_whole {
        // It fails before it runs: what PostgreSQL would have read behind the error does not matter.
        return 0;
    }
    assert_eq!(depth, 0, "{text:?} is read as {tokens:?}");
    query
        .check_parameters(highest)
        .unwrap_or_else(|refusal| panic!("{text:?} is read as {tokens:?}: {refusal}"));
    tokens.len()
}

#[tokio::test]
async fn no_quote_escape_comment_or_line_break_hides_a_name_from_the_screen() {
    let database = labdata_test_database::TestDatabase::new().await;
    let server = look_behind(database.url()).await;
    let mut random = Random::new(36);
    let mut compared = 0;
    for parts in [STRINGS, ALL] {
        for _ in 0..20_000 {
            let query = random_query(&mut random, &parts);
            compared += usize::from(assert_read_alike(&server, &query).await > 2);
        }
    }
    // The generator still makes texts that both accept.
    assert!(compared > 2_000, "{compared}");
}

#[tokio::test]
async fn known_ways_to_hide_a_name_are_refused_or_read_alike() {
    let database = labdata_test_database::TestDatabase::new().await;
    let server = look_behind(database.url()).await;
    for text in [
        "select E'a'\n'b\\'', pg_authid, '\\''",
        "select E'a' -- it's\n'\\'', pg_authid --'",
        "select e'a'\r'\\' || pg_authid || '",
        "select u&'a'\n'\\' , pg_authid, ' uescape '!'",
        "select b'1''0', pg_authid, '",
        "select 1_e'\\', pg_authid, '",
        "select $1e'\\', pg_authid, '",
        "select $a$ $b$ $a$, pg_authid, $b$",
        "select a$b$, pg_authid, $b$",
        "select /* /* */ pg_authid, /* */ */ 1",
        "select 1 --\rpg_authid",
    ] {
        assert_read_alike(&server, text).await;
    }
}

#[tokio::test]
async fn a_server_with_old_escapes_reads_queries_with_the_standard_ones() {
    let lab = QueryLab::new().await;
    lab.run_behind(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET standard_conforming_strings = off', \
         current_database()); EXCEPTION WHEN others THEN NULL; END $$",
    )
    .await;
    let lab = lab.restarted();
    let rows = lab.rows(r"select 'a\', length('\'), 'b'").await;
    assert_eq!(rows, serde_json::json!([["a\\", 1, "b"]]));
}
