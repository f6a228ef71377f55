//! A clause that its suite's macro forgets would never run; this finds it.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

/// Returns every Rust file below a directory.
fn sources(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// The name with which a text begins.
fn name(text: &str) -> &str {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .next()
        .unwrap_or_default()
}

#[test]
fn every_clause_is_in_the_macro_of_a_suite() {
    let (mut listed, mut clauses) = (BTreeSet::new(), BTreeSet::new());
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let text = fs::read_to_string(&path).unwrap();
        for rest in text.split("_contract {\n").skip(1) {
            let (listing, _) = rest.split_once("\n}\n").unwrap();
            let names = listing
                .lines()
                .filter_map(|line| line.trim().strip_suffix(','));
            listed.extend(names.filter(|line| name(line) == *line).map(str::to_owned));
        }
        // A clause takes the harness; other public functions are steps that clauses share.
        let functions = text.split("\npub async fn ").skip(1);
        let own = functions
            .filter(|function| function.split('{').next().unwrap().contains("harness: &H"))
            .map(|function| name(function).to_owned());
        clauses.extend(own);
    }
    assert_eq!(listed, clauses);
    assert!(clauses.len() > 10, "the suites were not found");
}
