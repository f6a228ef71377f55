//! Contract of [`FileRepository::list`](labdata_ports::files::FileRepository::list).

use std::cmp::Reverse;

use crate::{
    files::{FilesLab, confirmed, of},
    given::{self, at},
    paging::{ALL, assert_pages, first, read_to_the_end},
};
use labdata_domain::{
    files::{ExtensionFilter, File, FileFilter, NameQuery},
    ids::{ExecutionId, OrganizationId},
};

impl FilesLab {
    /// Uploads files of an instrument, one a second, and returns them newest first.
    async fn uploaded(
        &self,
        organization: OrganizationId,
        instrument: &str,
        paths: &[&str],
    ) -> Vec<File> {
        let on = of(
            Some(self.instrument(organization, instrument).await.id),
            None,
        );
        let mut stored = Vec::new();
        for (second, path) in (0..).zip(paths) {
            let file = confirmed(path, on, at(second));
            self.add_to(organization, &file).await;
            stored.insert(0, file);
        }
        stored
    }

    /// Fails unless the filter shows exactly the files that the domain says match.
    async fn assert_shows(&self, filter: &FileFilter, stored: &[File], expected: &[&str]) {
        let list = async |page| {
            self.files
                .list(self.ours, filter, page)
                .await
                .unwrap()
                .items
        };
        let found = list(ALL).await;
        let paths: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, expected, "{filter:?}");
        assert_eq!(list(first(100)).await, found, "{filter:?}");
        let matching: Vec<File> = stored
            .iter()
            .filter(|file| filter.matches(&file.path, file.attribution))
            .cloned()
            .collect();
        assert_eq!(found, matching, "{filter:?}");
    }
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

crate::suite!(
    use files::lists as file_lists;

    /// The list is ordered by confirmation time, then id, newest first, with any page size.
    async fn the_list_is_newest_first_and_total(lab: &FilesLab) {
        let on = lab.reader(lab.ours).await;
        let mut expected = Vec::new();
        for (number, second) in [20, 10, 30, 10, 20, 10, 10].into_iter().enumerate() {
            let file = confirmed(&format!("{number}.csv"), on, at(second));
            lab.add(&file).await;
            expected.push(file);
        }
        expected.sort_by_key(|file| Reverse((file.state.uploaded_at(), file.id)));
        let everything = FileFilter::default();
        assert_eq!(
            lab.files
                .list(lab.ours, &everything, ALL)
                .await
                .unwrap()
                .items,
            expected
        );
        let read = async |page| lab.files.list(lab.ours, &everything, page).await;
        assert_pages([1, 2, 3, 100], &expected, read).await;
    }

    /// A page has a cursor only if more items follow, not because it is full.
    async fn a_full_last_page_has_no_next(lab: &FilesLab) {
        lab.uploaded(lab.ours, "reader", &["a", "b", "c"]).await;
        let everything = FileFilter::default();
        assert_eq!(
            lab.files
                .list(lab.ours, &everything, first(3))
                .await
                .unwrap()
                .next,
            None
        );
        assert!(
            lab.files
                .list(lab.ours, &everything, first(2))
                .await
                .unwrap()
                .next
                .is_some()
        );
    }

    /// Files that exist when paging begins are read exactly once, while newer ones are uploaded.
    async fn pages_lose_and_repeat_nothing_while_others_upload(lab: &FilesLab) {
        let expected = lab
            .uploaded(lab.ours, "reader", &["a", "b", "c", "d", "e", "f", "g"])
            .await;
        let everything = FileFilter::default();
        let on = expected.first().unwrap().attribution;
        let items = read_to_the_end(2, async |number, request| {
            let page = lab.files.list(lab.ours, &everything, request).await?;
            let newer = confirmed(&format!("new {number}"), on, at(60));
            lab.add(&newer).await;
            Ok(page)
        })
        .await;
        assert_eq!(items, expected);
    }

    /// A file is displayed when instrument, extensions and query all match.
    async fn every_part_of_a_filter_must_match(lab: &FilesLab) {
        let other = lab.uploaded(lab.ours, "other", &["plate 1.csv"]).await;
        let mut stored = lab
            .uploaded(lab.ours, "reader", &["plate 1.csv", "plate 1.txt", "x.csv"])
            .await;
        let instrument = stored.first().unwrap().attribution.instrument();
        stored.extend(other);
        let by_instrument = FileFilter {
            instrument,
            ..FileFilter::default()
        };
        let expected = ["x.csv", "plate 1.txt", "plate 1.csv"];
        lab.assert_shows(&by_instrument, &stored, &expected).await;
        let all = FileFilter {
            instrument,
            ..extensions("csv")
        };
        let all = FileFilter {
            query: query("plate").query,
            ..all
        };
        lab.assert_shows(&all, &stored, &["plate 1.csv"]).await;
    }

    /// Only the files of that execution are listed, in pages and with any other filter; an unknown execution
    /// has none.
    async fn the_files_of_an_execution_are_listed(lab: &FilesLab) {
        let (ours, other) = (
            lab.execution(lab.ours, at(0), None).await.id,
            lab.execution(lab.ours, at(0), None).await.id,
        );
        let mut stored = lab.uploaded(lab.ours, "reader", &["plate 9.csv"]).await;
        for (second, (path, execution)) in (10..).zip([
            ("plate 1.csv", ours),
            ("plate 2.csv", other),
            ("plate 3.txt", ours),
            ("plate 4.tar.gz", ours),
        ]) {
            let file = confirmed(path, of(None, Some(execution)), at(second));
            lab.add(&file).await;
            stored.insert(0, file);
        }
        let of_execution = |execution| FileFilter {
            execution: Some(execution),
            ..FileFilter::default()
        };
        let expected = ["plate 4.tar.gz", "plate 3.txt", "plate 1.csv"];
        lab.assert_shows(&of_execution(ours), &stored, &expected)
            .await;
        lab.assert_shows(&of_execution(other), &stored, &["plate 2.csv"])
            .await;
        let unknown = ExecutionId::new(given::uuid());
        lab.assert_shows(&of_execution(unknown), &stored, &[]).await;
        let named = FileFilter {
            extensions: extensions("csv,tar.gz").extensions,
            query: query("plate").query,
            ..of_execution(ours)
        };
        lab.assert_shows(&named, &stored, &["plate 4.tar.gz", "plate 1.csv"])
            .await;
        let pages = read_to_the_end(2, async |_, page| {
            lab.files.list(lab.ours, &of_execution(ours), page).await
        });
        assert_eq!(pages.await.len(), 3);
    }

    /// `csv` and `.CSV` ask for the same; an extension is the end of the name behind a dot.
    async fn extensions_match_without_regard_to_case(lab: &FilesLab) {
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
        let stored = lab.uploaded(lab.ours, "reader", &paths).await;
        let cases: [(&str, &[&str]); 6] = [
            ("csv", &["b.CSV", "a.csv"]),
            (".CsV,TXT", &["c.txt", "b.CSV", "a.csv"]),
            ("gz", &["f.tar.gz", "d.csv.gz"]),
            ("tar.gz,äö", &["g.ÄÖ", "f.tar.gz"]),
            ("c%v,c_v", &[]),
            ("c\0v", &[]),
        ];
        for (text, expected) in cases {
            lab.assert_shows(&extensions(text), &stored, expected).await;
        }
    }

    /// `%`, `_` and `\` stand for themselves.
    async fn a_query_is_a_literal_part_of_the_path_without_regard_to_case(lab: &FilesLab) {
        let paths = [
            "run/Plate_1.csv",
            "plateX1.csv",
            "100%.txt",
            "C:\\Süd\\a.csv",
            "it's.csv",
            "a\\%b",
        ];
        let stored = lab.uploaded(lab.ours, "reader", &paths).await;
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
            lab.assert_shows(&query(text), &stored, expected).await;
        }
    }

    /// A filtered list has pages like any other.
    async fn filters_and_pages_go_together(lab: &FilesLab) {
        let paths = [
            "a.csv", "a.txt", "b.csv", "b.txt", "c.csv", "c.txt", "d.csv",
        ];
        let stored = lab.uploaded(lab.ours, "reader", &paths).await;
        let filter = extensions("csv");
        let expected: Vec<File> = stored
            .into_iter()
            .filter(|file| file.path.as_str().ends_with("csv"))
            .collect();
        let read = async |page| lab.files.list(lab.ours, &filter, page).await;
        assert_pages([1, 2, 3], &expected, read).await;
    }

    /// A search shows matching files in the list's order, also those confirmed with an earlier time than
    /// files before them, and no deleted ones.
    async fn searches_find_files_that_come_late_and_none_that_were_deleted(lab: &FilesLab) {
        let on = lab.reader(lab.ours).await;
        let (filter, mut stored) = (query("plate"), Vec::<File>::new());
        for round in 0..12 {
            for number in 0..7 {
                // Every other round brings files between those of the round before.
                let second = (round / 2) * 20 + number * 2 + round % 2;
                let name = ["plate", "blot"][usize::from(number % 3 == 2)];
                let file = confirmed(&format!("{name} {round}-{number}"), on, at(second));
                lab.add(&file).await;
                stored.push(file);
            }
            let deleted = stored.swap_remove(usize::try_from(round).unwrap() * 3);
            lab.files
                .delete(lab.ours, deleted.id, at(50))
                .await
                .unwrap();
            let mut expected = stored.clone();
            expected.retain(|file| filter.matches(&file.path, file.attribution));
            expected.sort_by_key(|file| Reverse((file.state.uploaded_at(), file.id)));
            let read = async |page| lab.files.list(lab.ours, &filter, page).await;
            assert_pages([1, 5, 100], &expected, read).await;
        }
    }

    /// An organization's list has no files of another, and no cursor leads to them.
    async fn the_list_shows_no_other_organization(lab: &FilesLab) {
        let expected = lab.uploaded(lab.ours, "reader", &["a", "b", "c"]).await;
        lab.uploaded(lab.theirs, "reader", &["d", "e", "f"]).await;
        let everything = FileFilter::default();
        let read = async |page| lab.files.list(lab.ours, &everything, page).await;
        assert_pages([1], &expected, read).await;
    }
);
