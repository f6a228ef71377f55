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

#[test]
fn a_text_of_dos_or_of_the_mac_is_a_doubt_whatever_was_detected() {
    for (word, encoding) in [
        // Taken for Shift-JIS or Big5 by the detector.
        (&b"Ger\x84t"[..], "windows-1252"),
        (b"Verd\x81nnung", "windows-1252"),
        (b"vol \xb5l;37 \xa1C", "windows-1252"),
        (b"vol \xe6l;37 \xf8C", "windows-1252"),
        // And for encodings of other languages.
        (b"L\x9asung", "windows-1250"),
        (b"\x9aberstand", "windows-1250"),
        (b"f\x9fr", "windows-1250"),
        (b"5 \xb1 1;37 \xa1C", "ISO-8859-2"),
    ] {
        let rows = [word, b"\n"].concat().repeat(12);
        let found = read([b"name;note\n", &*rows].concat());
        let word = String::from_utf8_lossy(word);
        assert_eq!(found.codes(), [("encoding", "encoding")], "{word}");
        let used = found.table.reading().options.encoding.unwrap();
        assert_eq!(used.name(), encoding, "{word}");
        let first = &found.table.doubts()[0].options[0];
        assert_eq!(first["encoding"], encoding);
    }
    for (encoding, text) in [
        (
            encoding_rs::WINDOWS_1250,
            "p\u{159}íli\u{161};\u{17e}lu\u{165}ou\u{10d}k\u{fd};k\u{16f}\u{148}\n",
        ),
        (
            encoding_rs::WINDOWS_1251,
            "\u{41e}\u{431}\u{440}\u{430}\u{437}\u{435}\u{446};\u{432}\u{442}\u{43e}\u{440}\u{43e}\u{439};\u{43e}\n",
        ),
        (
            encoding_rs::SHIFT_JIS,
            "\u{8a66}\u{6599};\u{6fc3}\u{5ea6};\u{7537}\n",
        ),
        (
            encoding_rs::GBK,
            "\u{6837}\u{54c1};\u{6d53}\u{5ea6};\u{7537}\n",
        ),
    ] {
        let (rows, ..) = encoding.encode(text);
        let found = read(rows.repeat(12));
        let used = found.table.reading().options.encoding.unwrap();
        assert_eq!(used, encoding, "{text}");
        assert!(
            found.codes().iter().all(|(code, _)| *code != "encoding"),
            "{text}"
        );
    }
}

#[test]
fn words_of_another_alphabet_are_read_right_or_doubted() {
    for (encoding, words) in [
        (
            encoding_rs::WINDOWS_1251,
            "образец значение первый проба контроль среда клетка белок опыт дата время номер объём масса концентрация температура разведение исследование",
        ),
        (
            encoding_rs::WINDOWS_1253,
            "δείγμα τιμή πρώτο έλεγχος κύτταρο πρωτεΐνη χρόνος αριθμός όγκος μάζα συγκέντρωση θερμοκρασία αραίωση μέτρηση",
        ),
    ] {
        for word in words.split(' ') {
            let (row, _, is_lossy) = encoding.encode(word);
            assert!(!is_lossy, "{word}");
            for rows in [1, 3, 96] {
                let lines = [&row, &b";1.5\n"[..]].concat().repeat(rows);
                let found = read([b"name;value\n", &*lines].concat());
                let is_doubted = found.codes().contains(&("encoding", "encoding"));
                let used = found.table.reading().options.encoding.unwrap();
                let (text, _) = used.decode_without_bom_handling(&row);
                assert!(is_doubted || text == word, "{word}: {text}, {rows} rows");
            }
        }
    }
    let (row, ..) = encoding_rs::WINDOWS_1251.encode("проба;1.5\n");
    let found = read([b"name;value\n", &*row].concat());
    let doubt = &found.table.doubts()[0];
    assert!(
        doubt.message.contains("\"проба\" in windows-1251"),
        "{}",
        doubt.message
    );
    let mut encodings = doubt.options.iter().map(|option| &option["encoding"]);
    assert!(encodings.any(|encoding| encoding == "windows-1251"));
}
