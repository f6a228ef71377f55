//! A clause that its suite's macro forgets would never run; this finds it.

use std::{collections::BTreeSet, fs, path::Path};

/// The name with which a text begins.
fn name(text: &str) -> &str {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .next()
        .unwrap_or_default()
}

#[test]
fn every_clause_is_in_the_macro_of_its_suite() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut suites = 0;
    for entry in fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let Some((_, rest)) = text.split_once("_contract {\n") else {
            continue;
        };
        let (listing, code) = rest.split_once("\n}\n").unwrap();
        let listed: BTreeSet<&str> = listing
            .lines()
            .filter_map(|line| line.trim().strip_suffix(','))
            .filter(|line| name(line) == *line)
            .collect();
        let clauses: BTreeSet<&str> = code.split("\npub async fn ").skip(1).map(name).collect();
        assert_eq!(listed, clauses, "{}", path.display());
        suites += 1;
    }
    assert!(suites >= 5, "the suites were not found");
}
