//! Ends of tables, and lines below them.

use super::*;

#[test]
fn a_text_below_a_table_is_a_remark_or_a_short_row() {
    let remark = vec![("second_table", "last_row")];
    for (text, codes) in [
        // Below numbers.
        ("t,od\n0,0.5\nEnd\n", &remark),
        // Several words in a wide table, also of a program that leaves delimiters out.
        ("k,od,note\nA1,0.5,x\nA2,0.6\nEnd of run\n", &remark),
        ("k,od\nA1,0.5\nA2\nControl 3\n", &vec![]),
        // In a narrow table several words, or one below three rows.
        ("k,od\nA1,0.5\nEnd of run\n", &remark),
        ("k,od\nA1,1\nA2,2\nA3,3\nEnd\n", &remark),
        ("k,od\nA1,1\nA2,2\nEnd\n", &vec![]),
        ("k,od\nA1,1\nA2,2\n End \n", &vec![]),
        // All delimiters are there.
        ("k,od\nA1,1\nA2,2\nA3,3\nEnd,\n", &vec![]),
        ("k\nA1\nA2\nA3\nEnd of run\n", &vec![]),
        ("k,od\nA1,1\nA2,2\nA3,3\n17\n", &vec![]),
        ("k,od\nEnd of run\nA1,1\n", &vec![]),
    ] {
        assert_eq!(read(text).codes(), *codes, "{text}");
    }
}

#[test]
fn rows_behind_blank_lines_belong_to_the_table_or_end_it() {
    for (text, rows, codes, below, blank) in [
        ("n,m\n1,2\n\n3,4\n", 2, vec![], 0, 1),
        ("n,m\n\n\n1,2\n3,4\n", 2, vec![], 0, 0),
        ("n,m\n1,2\n\n\n3,4\n\n5,6\n\n", 3, vec![], 0, 3),
        // Texts below numbers, also in some of the columns.
        ("n,m\n1,2\n\nx,y\n3,4\n", 1, vec!["second_table"], 2, 0),
        ("n,m\n1,2\n\n,y\n3,4\n", 1, vec!["second_table"], 2, 0),
        ("n,m\n1,x\n\ny,2\n", 2, vec!["text_numbers"; 0], 0, 1),
        ("k,m\nx,y\n\nu,v\n", 2, vec![], 0, 1),
        // The header once more, with other blanks.
        ("k,m\nx,y\n\n k , m\nu,v\n", 1, vec!["second_table"], 2, 0),
        ("k,m\nx,y\n\nk,n\nu,v\n", 3, vec![], 0, 1),
        // A wider row.
        (
            "k,m\nx,1\ny,2\nz,3\n\nu,v,w\n",
            3,
            vec!["second_table"],
            1,
            0,
        ),
        ("k,m\nx,y\n\nu,v,\na,b\n", 3, vec![], 0, 1),
        // One text with all delimiters, which is a row if others follow.
        ("k,b,c\nx,2,3\n\nEnd,,\n", 1, vec!["second_table"], 1, 0),
        ("k,b,c\nx,2,3\n\nEnd,,\ny,5,6\n", 3, vec![], 0, 1),
        ("k,b,c\nx,2,3\n\n7,,\n", 2, vec![], 0, 1),
        ("k,b\nx,2\n\nEnd,\n", 2, vec![], 0, 1),
        // Short rows.
        ("k,b\nx,2\n\ny\n", 1, vec!["second_table"], 1, 0),
        ("k,b\nx,2\n\ny\nz,3\n", 3, vec![], 0, 1),
    ] {
        let found = read(text);
        let found_codes: Vec<&str> = found.codes().into_iter().map(|(code, _)| code).collect();
        let reading = found.table.reading();
        assert_eq!(
            (
                found.rows.len(),
                found_codes,
                reading.lines_below,
                reading.blank_lines
            ),
            (rows, codes, below, blank),
            "{text}"
        );
    }
}

#[test]
fn lines_behind_a_given_last_row_are_counted() {
    let text = "a,b\n1,2\n3,4\n\n5,6\nEnd\n";
    for (last, rows, below) in [
        (2, 1, 3),
        (3, 2, 2),
        (4, 2, 2),
        (5, 3, 1),
        (6, 4, 0),
        (9, 4, 0),
    ] {
        let found = read_with(text, json!({"last_row": last}));
        assert_eq!(
            (found.rows.len(), found.table.reading().lines_below),
            (rows, below),
            "{last}"
        );
        // A line that a person counts as a row is no remark.
        assert_eq!(found.codes(), [], "{last}");
    }
}

#[test]
fn twenty_lines_below_a_table_may_belong_to_it() {
    for (lines, codes) in [(20, 0), (21, 1)] {
        let text = format!("k,b\nx,2\n\n{}z,3\n", "y\n".repeat(lines));
        let found = read_with(text, json!({"delimiter": ","}));
        assert_eq!(found.codes().len(), codes, "{lines}");
        assert_eq!(found.rows.len(), if codes == 0 { lines + 2 } else { 1 });
    }
}

#[test]
fn a_quotation_that_divides_into_rows_is_a_doubt() {
    for (text, is_doubtful) in [
        ("name,vol\nA1,1.5\nA2,\"1.6\nA3,1.7\"\nA4,1.8\n", true),
        ("name,vol\nA1,1.5\nA2,\"1.6\n\nA3,1.7\"\nA4,1.8\n", true),
        ("name,note,vol\nA1,\"x,1.0\nA2,y\",1.5\nA3,z,2\n", true),
        ("name,note\nA1,\"x\nA2,y\"\nA3,z\n", true),
        // Lines of other widths.
        ("name,note\nA1,\"x\ny\"\nA3,z\n", false),
        ("name,note\nA1,\"x,y\nA2,y\"\nA3,z\n", false),
        ("name,note,vol\nA1,\"x\nA2,y\",1.5\nA3,z,2\n", false),
        ("name,note,vol\nA1,\"x,1.0\nA2,y,2\",1.5\nA3,z,2\n", false),
        // Texts in columns of numbers.
        ("name,vol\nA1,1.5\nA3,1.7\nA2,\"1.6\nA4,low\"\n", false),
        (
            "name,vol,od\nA1,1.5,1\nA3,1.7,1\nA2,\"1.6,low\nA4,1.8,1\"\n",
            false,
        ),
        ("vol,name\n1.5,A\n1.6,B\nlow,\"C\n1.7,D\"\n", false),
        ("note\n\"x\ny\"\n", false),
    ] {
        let found = read_with(text, json!({"delimiter": ","}));
        let codes = found.codes();
        let has_doubt = codes.iter().any(|(code, _)| *code == "quotation_mark");
        assert_eq!(has_doubt, is_doubtful, "{text} {codes:?}");
        let given = read_with(text, json!({"delimiter": ",", "quote": "\""}));
        assert_eq!(given.problems, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn the_header_once_more_among_the_rows_is_a_doubt() {
    for (text, is_doubtful) in [
        ("name,kind\nA1,x\nname,kind\nA2,y\n", true),
        ("name,kind\nA1,x\n name , kind\nA2,y\n", true),
        ("name,kind,\nA1,x,\nname,kind,\nA2,y,\n", true),
        ("name,kind\nA1,x\nname,Kind\nA2,y\n", false),
        ("name,kind\nA1,x\nname,\nA2,y\n", false),
        // One text may be the name of its column.
        ("name\nA1\nname\nA2\n", false),
    ] {
        let found = read(text);
        let expected: &[_] = if is_doubtful {
            &[("second_table", "rows[3]")]
        } else {
            &[]
        };
        assert_eq!(found.codes(), expected, "{text}");
        assert_eq!(found.problems.len(), expected.len(), "{text}");
    }
}

#[test]
fn a_table_soon_below_many_settings_is_the_table() {
    let settings = "Setting,Value\nGain,high\nMode,slow\nOperator,Smith\nPlate,X\n\n";
    let found = read(format!(
        "Report\nRun 7\n\n{settings}well,od,note\nA1,1,x\nA2,2,y\n"
    ));
    assert_eq!(found.headers(), ["well", "od", "note"]);
}
