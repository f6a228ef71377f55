//! Contract of [`FileRepository::list`].

use std::{cmp::Reverse, sync::Arc};

use labdata_domain::{
    files::{ExtensionFilter, File, FileFilter, NameQuery},
    ids::{ExecutionId, OrganizationId},
    storage::StorageQuota,
};
use labdata_ports::files::FileRepository;

use crate::{
    Subject,
    files::{Files, confirmed, of},
    given::{self, at},
    paging::{ALL, first, read_to_the_end},
};

/// Makes one test of each clause of [`crate::files::lists`].
#[macro_export]
macro_rules! file_lists_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, file_lists in files::lists:
            the_list_is_newest_first_and_total,
            a_full_last_page_has_no_next,
            pages_lose_and_repeat_nothing_while_others_upload,
            every_part_of_a_filter_must_match,
            the_files_of_an_execution_are_listed,
            extensions_match_without_regard_to_case,
            a_query_is_a_literal_part_of_the_path_without_regard_to_case,
            filters_and_pages_go_together,
            searches_find_files_that_come_late_and_none_that_were_deleted,
            the_list_shows_no_other_organization,
        }
    };
}

fn files<H: Files>(harness: &H) -> Arc<dyn FileRepository> {
    Subject::<dyn FileRepository>::subject(harness)
}

/// Uploads files of an instrument, one a second, and returns them newest first.
async fn uploaded<H: Files>(
    harness: &H,
    organization: OrganizationId,
    instrument: &str,
    paths: &[&str],
) -> Vec<File> {
    let files = files(harness);
    let on = of(
        Some(harness.instrument(organization, instrument).await.id),
        None,
    );
    let mut stored = Vec::new();
    for (second, path) in (0..).zip(paths) {
        let file = confirmed(path, on, at(second));
        files
            .add(organization, &file, StorageQuota::UNLIMITED, at(second))
            .await
            .unwrap();
        stored.insert(0, file);
    }
    stored
}

fn extensions(text: &str) -> FileFilter {
    FileFilter {
        extensions: ExtensionFilter::parse(text),
        ..FileFilter::default()
    }
}

fn query(text: &str) -> FileFilter {
    FileFilter {
        query: NameQuery::parse(text).unwrap(),
        ..FileFilter::default()
    }
}

/// Fails unless the filter shows exactly the files that the domain says match.
async fn assert_shows<H: Files>(
    harness: &H,
    organization: OrganizationId,
    filter: &FileFilter,
    stored: &[File],
    expected: &[&str],
) {
    let found = files(harness)
        .list(organization, filter, ALL)
        .await
        .unwrap()
        .items;
    let paths: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, expected, "{filter:?}");
    let page = first(100);
    let on_a_page = files(harness)
        .list(organization, filter, page)
        .await
        .unwrap();
    assert_eq!(on_a_page.items, found, "{filter:?}");
    let matching: Vec<File> = stored
        .iter()
        .filter(|file| filter.matches(&file.path, file.attribution))
        .cloned()
        .collect();
    assert_eq!(found, matching, "{filter:?}");
}

/// The list is ordered by confirmation time, then id, newest first, with any page size.
pub async fn the_list_is_newest_first_and_total<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let files = files(harness);
    let on = of(Some(harness.instrument(lab, "reader").await.id), None);
    let mut expected = Vec::new();
    for (number, second) in [20, 10, 30, 10, 20, 10, 10].into_iter().enumerate() {
        let file = confirmed(&format!("{number}.csv"), on, at(second));
        files
            .add(lab, &file, StorageQuota::UNLIMITED, at(second))
            .await
            .unwrap();
        expected.push(file);
    }
    expected.sort_by_key(|file| Reverse((file.state.uploaded_at(), file.id)));
    let everything = FileFilter::default();
    assert_eq!(
        files.list(lab, &everything, ALL).await.unwrap().items,
        expected
    );
    for limit in [1, 2, 3, 100] {
        let read = async |_, page| files.list(lab, &everything, page).await;
        assert_eq!(
            read_to_the_end(limit, read).await,
            expected,
            "in pages of {limit}"
        );
    }
}

/// A page has a cursor only if more items follow, not because it is full.
pub async fn a_full_last_page_has_no_next<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    uploaded(harness, lab, "reader", &["a", "b", "c"]).await;
    let (files, everything) = (files(harness), FileFilter::default());
    assert_eq!(
        files.list(lab, &everything, first(3)).await.unwrap().next,
        None
    );
    assert!(
        files
            .list(lab, &everything, first(2))
            .await
            .unwrap()
            .next
            .is_some()
    );
}

/// Files that exist when paging begins are read exactly once, while newer ones are uploaded.
pub async fn pages_lose_and_repeat_nothing_while_others_upload<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let expected = uploaded(harness, lab, "reader", &["a", "b", "c", "d", "e", "f", "g"]).await;
    let (files, everything) = (files(harness), FileFilter::default());
    let on = expected.first().unwrap().attribution;
    let items = read_to_the_end(2, async |number, request| {
        let page = files.list(lab, &everything, request).await?;
        let newer = confirmed(&format!("new {number}"), on, at(60));
        files
            .add(lab, &newer, StorageQuota::UNLIMITED, at(60))
            .await
            .unwrap();
        Ok(page)
    })
    .await;
    assert_eq!(items, expected);
}

/// A file is shown when instrument, extensions and query all match.
pub async fn every_part_of_a_filter_must_match<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let other = uploaded(harness, lab, "other", &["plate 1.csv"]).await;
    let mut stored = uploaded(
        harness,
        lab,
        "reader",
        &["plate 1.csv", "plate 1.txt", "x.csv"],
    )
    .await;
    let instrument = stored.first().unwrap().attribution.instrument();
    stored.extend(other);
    let by_instrument = FileFilter {
        instrument,
        ..FileFilter::default()
    };
    let expected = ["x.csv", "plate 1.txt", "plate 1.csv"];
    assert_shows(harness, lab, &by_instrument, &stored, &expected).await;
    let all = FileFilter {
        instrument,
        ..extensions("csv")
    };
    let all = FileFilter {
        query: query("plate").query,
        ..all
    };
    assert_shows(harness, lab, &all, &stored, &["plate 1.csv"]).await;
}

/// Only the files of that execution are listed, in pages and with any other filter; an unknown execution
/// has none.
pub async fn the_files_of_an_execution_are_listed<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (ours, other) = (
        harness.execution(lab, at(0), None).await.id,
        harness.execution(lab, at(0), None).await.id,
    );
    let mut stored = uploaded(harness, lab, "reader", &["plate 9.csv"]).await;
    for (second, (path, execution)) in (10..).zip([
        ("plate 1.csv", ours),
        ("plate 2.csv", other),
        ("plate 3.txt", ours),
        ("plate 4.tar.gz", ours),
    ]) {
        let file = confirmed(path, of(None, Some(execution)), at(second));
        files(harness)
            .add(lab, &file, StorageQuota::UNLIMITED, at(second))
            .await
            .unwrap();
        stored.insert(0, file);
    }
    let of_execution = |execution| FileFilter {
        execution: Some(execution),
        ..FileFilter::default()
    };
    let expected = ["plate 4.tar.gz", "plate 3.txt", "plate 1.csv"];
    assert_shows(harness, lab, &of_execution(ours), &stored, &expected).await;
    assert_shows(
        harness,
        lab,
        &of_execution(other),
        &stored,
        &["plate 2.csv"],
    )
    .await;
    let unknown = ExecutionId::new(given::uuid());
    assert_shows(harness, lab, &of_execution(unknown), &stored, &[]).await;
    let named = FileFilter {
        extensions: extensions("csv,tar.gz").extensions,
        query: query("plate").query,
        ..of_execution(ours)
    };
    assert_shows(
        harness,
        lab,
        &named,
        &stored,
        &["plate 4.tar.gz", "plate 1.csv"],
    )
    .await;
    let pages = read_to_the_end(2, async |_, page| {
        files(harness).list(lab, &of_execution(ours), page).await
    });
    assert_eq!(pages.await.len(), 3);
}

/// `csv` and `.CSV` ask for the same; an extension is the end of the name behind a dot.
pub async fn extensions_match_without_regard_to_case<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let paths = [
        "a.csv",
        "b.CSV",
        "c.txt",
        "csv",
        "d.csv.gz",
        "dir.csv/e",
        "f.tar.gz",
        "g.ÄÖ",
        "h.",
    ];
    let stored = uploaded(harness, lab, "reader", &paths).await;
    let cases: [(&str, &[&str]); 6] = [
        ("csv", &["b.CSV", "a.csv"]),
        (".CsV,TXT", &["c.txt", "b.CSV", "a.csv"]),
        ("gz", &["f.tar.gz", "d.csv.gz"]),
        ("tar.gz,äö", &["g.ÄÖ", "f.tar.gz"]),
        ("c%v,c_v", &[]),
        ("c\0v", &[]),
    ];
    for (text, expected) in cases {
        assert_shows(harness, lab, &extensions(text), &stored, expected).await;
    }
}

/// `%`, `_` and `\` stand for themselves.
pub async fn a_query_is_a_literal_part_of_the_path_without_regard_to_case<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let paths = [
        "run/Plate_1.csv",
        "plateX1.csv",
        "100%.txt",
        "C:\\Süd\\a.csv",
        "it's.csv",
        "a\\%b",
    ];
    let stored = uploaded(harness, lab, "reader", &paths).await;
    let cases: [(&str, &[&str]); 9] = [
        ("PLATE", &["plateX1.csv", "run/Plate_1.csv"]),
        ("e_1", &["run/Plate_1.csv"]),
        ("%", &["a\\%b", "100%.txt"]),
        ("\\", &["a\\%b", "C:\\Süd\\a.csv"]),
        ("\\%", &["a\\%b"]),
        ("SÜD", &["C:\\Süd\\a.csv"]),
        ("'", &["it's.csv"]),
        ("run/p", &["run/Plate_1.csv"]),
        ("nothing", &[]),
    ];
    for (text, expected) in cases {
        assert_shows(harness, lab, &query(text), &stored, expected).await;
    }
}

/// A filtered list has pages like any other.
pub async fn filters_and_pages_go_together<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let paths = [
        "a.csv", "a.txt", "b.csv", "b.txt", "c.csv", "c.txt", "d.csv",
    ];
    let stored = uploaded(harness, lab, "reader", &paths).await;
    let filter = extensions("csv");
    let expected: Vec<File> = stored
        .into_iter()
        .filter(|file| file.path.as_str().ends_with("csv"))
        .collect();
    let files = files(harness);
    for limit in [1, 2, 3] {
        let read = async |_, page| files.list(lab, &filter, page).await;
        assert_eq!(
            read_to_the_end(limit, read).await,
            expected,
            "in pages of {limit}"
        );
    }
}

/// A search shows matching files in the list's order, also those confirmed with an earlier time than
/// files before them, and no deleted ones.
pub async fn searches_find_files_that_come_late_and_none_that_were_deleted<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let files = files(harness);
    let on = of(Some(harness.instrument(lab, "reader").await.id), None);
    let (filter, mut stored) = (query("plate"), Vec::<File>::new());
    for round in 0..12 {
        for number in 0..7 {
            // Every other round brings files between those of the round before.
            let second = (round / 2) * 20 + number * 2 + round % 2;
            let name = ["plate", "blot"][usize::from(number % 3 == 2)];
            let file = confirmed(&format!("{name} {round}-{number}"), on, at(second));
            files
                .add(lab, &file, StorageQuota::UNLIMITED, at(second))
                .await
                .unwrap();
            stored.push(file);
        }
        let deleted = stored.swap_remove(usize::try_from(round).unwrap() * 3);
        files.delete(lab, deleted.id, at(50)).await.unwrap();
        let mut expected = stored.clone();
        expected.retain(|file| filter.matches(&file.path, file.attribution));
        expected.sort_by_key(|file| Reverse((file.state.uploaded_at(), file.id)));
        for limit in [1, 5, 100] {
            let read = async |_, page| files.list(lab, &filter, page).await;
            assert_eq!(read_to_the_end(limit, read).await, expected);
        }
    }
}

/// An organization's list has no files of another, and no cursor leads to them.
pub async fn the_list_shows_no_other_organization<H: Files>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let expected = uploaded(harness, ours, "reader", &["a", "b", "c"]).await;
    uploaded(harness, theirs, "reader", &["d", "e", "f"]).await;
    let (files, everything) = (files(harness), FileFilter::default());
    let read = async |_, page| files.list(ours, &everything, page).await;
    assert_eq!(read_to_the_end(1, read).await, expected);
}
