//! `labdata demo`, from its first line to its last.

use std::fs;

use crate::process::{directory, labdata, run, text};

#[test]
fn the_demo_tells_every_step_and_leaves_nothing_behind() {
    let (directory, temporary) = (directory(), directory());
    let output =
        run(labdata(directory.path(), &["demo", "--exit"]).env("TMPDIR", temporary.path()));
    let (reported, log) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{reported}{log}");
    assert!(
        reported.contains("2400 points on 3 pages, all equal"),
        "{reported}"
    );
    assert!(
        reported.contains("simulated_growth_curves: 2400 points written under"),
        "{reported}"
    );
    assert!(
        reported.contains("2400 points of its execution, all equal"),
        "{reported}"
    );
    let blank = reported
        .lines()
        .find(|line| line.trim_start().starts_with("D6 "))
        .unwrap();
    assert!(blank.contains("▁▁▁▁") && !blank.contains('█'), "{blank}");
    assert!(reported.contains('█'), "{reported}");
    for place in [&directory, &temporary] {
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

#[test]
fn the_demo_says_what_is_missing_where_no_script_can_run() {
    let directory = directory();
    let output = run(labdata(directory.path(), &["demo", "--exit"])
        .env("LABDATA_PYTHON", "/bin/false")
        // Scripts of the standard library alone do not need it.
        .env("LABDATA_UV", "/bin/false"));
    let (reported, log) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{reported}{log}");
    assert!(
        reported.contains("No job can run on this machine")
            && reported.contains("`/bin/false` does not work")
            && reported.contains("LABDATA_PYTHON"),
        "{reported}"
    );
    assert!(
        reported.contains("2400 points on 3 pages, all equal"),
        "{reported}"
    );
}

#[test]
fn the_demo_fails_with_a_file_that_is_no_export() {
    let directory = directory();
    fs::write(
        directory.path().join("notes.txt"),
        "Time\tA1\n0:01:00\tred\n",
    )
    .unwrap();
    let output = run(&mut labdata(
        directory.path(),
        &["demo", "--exit", "--file", "notes.txt"],
    ));
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(
        line.contains("notes.txt: line 2: A1 holds \"red\""),
        "{line}"
    );
}
