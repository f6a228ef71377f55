//! Texts in encodings that are not detected.

use super::*;

#[test]
fn a_text_that_is_improbable_in_windows_1252_is_a_doubt_about_its_encoding() {
    for bytes in [
        // DOS and Mac.
        &b"well;vol (\xe6l)\nA1;5\n"[..],
        b"name;Gr\x94\xe1e\nM\x81ller;5\n",
        b"name;temp\nA1;37 \xa1C\n",
        b"name;v\nM\x9fller;5\n",
    ] {
        let found = read(bytes);
        assert_eq!(found.codes(), [("encoding", "encoding")]);
        let message = found.table.check().unwrap_err().to_string();
        assert!(
            message.contains("{\"encoding\":\"macintosh\"}"),
            "{message}"
        );
        let settled = read_with(bytes, json!({"encoding": "windows-1252"}));
        assert_eq!(settled.codes(), []);
    }
    let mac = read_with(b"name;v\nM\x9fller;5\n", json!({"encoding": "macintosh"}));
    assert_eq!(mac.cells()[0], ["M\u{fc}ller", "5"]);
    assert_eq!(mac.codes(), []);
    for bytes in [
        &b"well;vol (\xb5l)\nM\xfcller;37 \xb0C\n"[..],
        "well;vol (\u{b5}l)\nM\u{fc}ller;L\u{201d}sung\n".as_bytes(),
    ] {
        assert_eq!(read(bytes).codes(), []);
    }
}

#[test]
fn one_word_far_below_is_enough_for_a_doubt_about_the_encoding() {
    let rows = "A1;M\u{fc}ller\n".repeat(20_000);
    let (rows, ..) = encoding_rs::WINDOWS_1252.encode(&rows);
    let bytes = [b"well;name\n", &*rows, b"A2;Ger\x84t\n"].concat();
    let source = Box::new(Cursor::new(bytes));
    let table = open_table(source, &ReadOptions::default(), 100_000).unwrap();
    assert_eq!(&*table.doubts()[0].code, "encoding");
    assert!(table.doubts()[0].message.contains("Ger\u{201e}t"));
}
