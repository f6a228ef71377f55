//! Random files.

use labdata_domain::scalar::DataType;
use proptest::prelude::*;

use super::Read;
use crate::read::ReadOptions;

/// A cell of a random table.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,6}",
        "-?[0-9]{1,12}",
        "-?[0-9]{1,4}[.][0-9]{1,4}",
        "[a-z\"\n,;\t\u{b5}\u{fc}']{0,8}",
        "2024-0[1-9]-1[0-9]",
        Just(String::new()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any table is read as it was written, or refused.
    #[test]
    fn a_table_is_read_as_it_was_written_or_refused(
        rows in prop::collection::vec((cell(), cell()), 1..12),
        delimiter in prop::sample::select(vec![b',', b';', b'\t', b'|']),
        style in prop::sample::select(vec![csv::QuoteStyle::Necessary, csv::QuoteStyle::Always, csv::QuoteStyle::NonNumeric]),
        terminator in prop::sample::select(vec![csv::Terminator::CRLF, csv::Terminator::Any(b'\n')]),
    ) {
        let mut writer = csv::WriterBuilder::new()
            .delimiter(delimiter)
            .quote_style(style)
            .terminator(terminator)
            .from_writer(Vec::new());
        writer.write_record(["key", "first", "second"]).unwrap();
        for (index, (first, second)) in rows.iter().enumerate() {
            writer.write_record([&format!("k{index}"), first, second]).unwrap();
        }
        let bytes = writer.into_inner().unwrap();
        let Ok(found) = Read::of(&bytes, &ReadOptions::default()) else {
            return Ok(());
        };
        if found.table.check().is_err() || !found.problems.is_empty() {
            return Ok(());
        }
        prop_assert_eq!(found.headers(), ["key", "first", "second"]);
        prop_assert_eq!(found.rows.len(), rows.len());
        for ((_, cells), (first, second)) in found.rows.iter().zip(&rows) {
            for ((cell, written), data_type) in cells.iter().skip(1).zip([first, second]).zip(found.types().into_iter().skip(1)) {
                let Some(cell) = cell else {
                    prop_assert!(written.trim().is_empty(), "{:?} became null", written);
                    continue;
                };
                match data_type {
                    DataType::Integer | DataType::Float => {
                        let expected: f64 = written.trim().parse().unwrap();
                        let found: f64 = cell.to_string().parse().unwrap();
                        // Zero has a sign as a float, and none as an integer.
                        prop_assert_eq!((found + 0.0).to_bits(), (expected + 0.0).to_bits());
                    }
                    DataType::Text => prop_assert_eq!(&cell.to_string(), written),
                    _ => prop_assert_eq!(cell.to_string(), written.trim()),
                }
            }
        }
    }

    #[test]
    fn no_bytes_end_in_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Read::of(&bytes, &ReadOptions::default());
    }

    #[test]
    fn no_text_ends_in_a_panic(text in "[a\"',;|\t\r\n 0-9.\u{e9}-]{0,160}") {
        let _ = Read::of(text.as_bytes(), &ReadOptions::default());
    }
}
