use super::*;

fn choice(sample: &str) -> DelimiterChoice {
    let find = |sample: &str| find_delimiter(sample, &ReadOptions::default(), None);
    let found = find(sample);
    // Lines of Windows end in two signs, which are one break.
    let windows = find(&sample.replace("\r\n", "\n").replace('\n', "\r\n"));
    assert_eq!(format!("{windows:?}"), format!("{found:?}"), "{sample:?}");
    found
}

#[track_caller]
fn is(sample: &str, delimiter: char) {
    let choice = choice(sample);
    assert_eq!(char::from(choice.delimiter), delimiter, "{sample:?}");
    assert!(choice.alternatives.is_empty(), "{sample:?}");
    assert!(!choice.may_be_decimals, "{sample:?}");
}

#[test]
fn the_delimiter_is_the_one_that_fits() {
    for sample in [
        "a,b\n1,2\n",
        "name,note\nA,\"x; y; z\"\n",
        "Run ID,17\nProtocol,demo\n\nwell,od,note\nA1,0.5,ok\n",
        "a,b,c\n1,2\n",
        "name,volume\na,1,2\n",
        "alone\n1\n2\n",
        "",
    ] {
        is(sample, ',');
    }
    is("a\tb\n1\t2\n", '\t');
    is("a\tb\n1,5\t2,5\n", '\t');
    is("a|b\n1|2\n", '|');
    for sample in [
        "a;b\n1;2\n",
        "name;vol\nA1;1,5\nA2;2,25\n",
        "Zeit;OD, 600 nm\n0;0,05\n30;0,08\n60;0,13\n",
        "Zeit, s;OD, nm\n0,5;0,05\n1,5;0,08\n",
        "id;note\n1;hello, world\n2;good, bye\n3;so, it, goes\n",
        "name, first;age\nSmith, John;30\nDoe, Jane;31\n",
        "at;od\n05.03.2024 14:22;0,05\n05.03.2024 14:23;0,06\n",
    ] {
        is(sample, ';');
    }
}

#[test]
fn a_sign_in_the_header_speaks_for_columns_and_one_below_it_does_not() {
    let lists = "A, 1\nx\nB, 2\n";
    for (header, delimiter) in [("note", b'\t'), ("note; more", b',')] {
        let found = choice(&format!("{header}\n{lists}"));
        assert_eq!(found.delimiter, delimiter, "{header}");
    }
}

#[test]
fn six_rows_of_three_texts_below_a_title_are_a_table_and_fewer_a_doubt() {
    for (row, count, is_doubtful) in [
        ("p;q;r\n", 6, false),
        ("p;q;r\n", 5, true),
        ("p;q\n", 9, true),
    ] {
        let found = choice(&format!("Samples\n{}", row.repeat(count)));
        assert_eq!(!found.alternatives.is_empty(), is_doubtful, "{row} {count}");
    }
}

#[test]
fn numbers_below_two_names_are_columns_also_below_a_title() {
    let rows = "1,5\n2,25\n".repeat(5);
    is(&format!("Run 7\nwell,count\n{rows}"), ',');
}

#[test]
fn quotations_end_beside_the_delimiter() {
    // As Luminex xPONENT writes it.
    let settings = "\"Program\",\"xPONENT\",\"\",\"FlexMAP 3D\"\r\n\"Build\",\"4.3\"\r\n\r\n\
        \"Last Calibration\",\"Passed\"\r\n\"CALInfo:\"\r\n\"Lot\",\"Result\"\r\n\"B1\",\"Pass\"\r\n";
    is(settings, ',');
    is(&settings.replace(',', ";"), ';');
    is(&settings.replace(',', "\t"), '\t');
    // A comma divides as well, but has texts behind its quotations.
    is("\"a\";b,c\n\"x\";1,2\n\"y\";2,5\n\"z\";3,5\n", ';');
    // A few faults are those of a row.
    is("name,note\nA,\"x\"y\nB,u; v\nC,w\nD,w\n", ',');
    is("name,note\nA,\"x\"y\nB,u; v\nC,w; x\n", ',');
    is("a;b\n\"1,5\";\"2,5\"\n\"2,5\";\"3,5\"\n", ';');
    let one = choice("note\n\"hello, world\"\n\"bye, moon\"\n");
    assert_eq!((one.delimiter, one.alternatives), (b'\t', vec![]));
}

#[test]
fn a_single_column_is_not_divided() {
    let one = choice("vol\n1,5\n2,5\n");
    assert_ne!(one.delimiter, b',');
    let texts = choice("note\nhello, world\nand more\n");
    assert_ne!(texts.delimiter, b',');
}

#[test]
fn delimiters_that_fit_equally_well_are_a_doubt() {
    let tie = choice("a,b;c\nx,y;z\nu,v;w\n");
    assert_eq!((tie.delimiter, tie.alternatives), (b',', vec![b';']));
    assert!(choice("OD, 600 nm\n0,05\n0,08\n").may_be_decimals);
    for sample in [
        "a,b\n1,2\n3,4\n",
        // Parts that are not both numbers.
        "OD, 600 nm\nx,05\n1,08\n",
        "OD, 600 nm\n,05\n1,08\n",
        "OD, 600 nm\n1,0x\n1,08\n",
        // Numbers that begin with no zero, and names of two columns.
        "OD, 600 nm\n1,5\n1,8\n",
        "OD,600 nm\n0,05\n0,08\n",
    ] {
        assert!(!choice(sample).may_be_decimals, "{sample:?}");
    }
}

#[test]
fn a_title_leaves_a_table_of_texts_divided() {
    for delimiter in [',', ';', '\t', '|'] {
        for rows in [2, 30] {
            let row = |row: usize| format!("S{row},K-{row},AB\n");
            let rows: String = (0..rows).map(row).collect();
            let table = format!("sample,strain,operator\n{rows}");
            let table = table.replace(',', &delimiter.to_string());
            for title in [
                "Sample list\n\n",
                "Sample list\r\n\r\n",
                "Report: X\nDate: 2024-01-05\n\n",
            ] {
                is(&format!("{title}{table}"), delimiter);
                is(&format!("{title}{table}\nEnd of report\n"), delimiter);
            }
        }
    }
    is(
        "Synergy H1\nDate: 2024-01-05\n\nWell,Valid,Count\nA1,false,187\nA2,true,674\n\nEnd\n",
        ',',
    );
    is("Samples\n\nname;ok\nA;true\nB;false\n", ';');
}

#[test]
fn a_title_without_a_blank_line_may_be_the_name_of_a_column() {
    for sample in [
        "name\nSmith,John\nDoe,Jane\n",
        "note\n\nhello, world\nbye, moon\n",
    ] {
        let found = choice(sample);
        assert_eq!(
            (found.delimiter, found.alternatives),
            (b',', vec![b'\t']),
            "{sample:?}"
        );
    }
    is("Plate 3\nwell,od\nA1,0.5\nA2,0.7\n", ',');
    is("Samples\nname\tstrain\nA\tx\nB\ty\n", '\t');
    let values = format!("vol\n{}", "1,5\n2,5\n".repeat(20));
    assert_ne!(choice(&values).delimiter, b',');
}

#[test]
fn the_fields_of_columns_show_the_delimiter() {
    let target = ImportTarget::new(vec!["name".to_owned(), "first_note".to_owned()]);
    for (sample, delimiter) in [
        ("List of\nName;First note\nA,x;B,y\nC,z;D\n", b';'),
        ("a,b;c\nname,first_note\nu,v;w\n", b','),
    ] {
        let found = find_delimiter(sample, &ReadOptions::default(), Some(&target));
        assert_eq!((found.delimiter, found.alternatives), (delimiter, vec![]));
    }
}

#[test]
fn two_names_are_two_columns_of_numbers() {
    is("day,colonies\n1,0\n2,5\n3,12\n", ',');
    is("x,y\n1,0\n", ',');
    is("a,b\n0,05\n1,08\n", ',');
}

#[test]
fn a_first_line_may_name_the_delimiter() {
    for sample in ["sep=;\nname;vol\nA1;1,5\n", "\"SEP=;\"\r\na;b\r\n"] {
        let choice = choice(sample);
        assert_eq!((choice.delimiter, choice.has_sep_line), (b';', true));
    }
    assert!(!choice("sepal;length\n1;2\n").has_sep_line);
}

#[test]
fn values_are_told_from_names_without_a_style() {
    for cell in [
        "",
        " ",
        "NA",
        "N/A",
        "#N/A",
        "NaN",
        "null",
        "TRUE",
        "false",
        "1.5",
        "-1,5",
        "2024-03-05",
        "05.03.2024 14:22",
        "2024-03-05T14:22:01Z",
    ] {
        assert!(is_typed(cell), "{cell}");
    }
    for cell in ["A1", "12 ml", "T12:00", "n.d.", "yes", "2024-03-05 noon"] {
        assert!(!is_typed(cell), "{cell}");
    }
}

#[test]
fn three_hundred_lines_decide() {
    let rows = |count: usize| format!("{}{}", "a;b\n".repeat(count), "c,d\n".repeat(900));
    is(&rows(300), ';');
    assert_eq!(choice(&rows(10)).delimiter, b',');
}

#[test]
fn a_name_above_values_is_a_sign_of_a_table() {
    for (name, cells, expected) in [
        ("od", &["0.5", "0.6"][..], true),
        ("od", &["1", "2", "3", "4", "x"], true),
        ("od", &["1", "2", "3", "x"], false),
        ("od", &["", "1"], true),
        ("od", &["", " "], false),
        ("od", &[], false),
        ("1", &["0.5", "0.6"], false),
        (" ", &["0.5", "0.6"], false),
    ] {
        let rows: Vec<[String; 1]> = cells.iter().map(|cell| [(*cell).to_owned()]).collect();
        let table: Vec<&[String]> = rows.iter().map(<[String; 1]>::as_slice).collect();
        let found = has_values(&[name.to_owned()], &table, 0);
        assert_eq!(found, expected, "{name} {cells:?}");
    }
}
