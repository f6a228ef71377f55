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
        // All delimiters are there.
        ("k,od\nA1,1\nA2,2\nA3,3\nEnd,\n", &vec![]),
        ("k\nA1\nA2\nA3\nEnd of run\n", &vec![]),
        ("k,od\nA1,1\nA2,2\nA3,3\n17\n", &vec![]),
        ("k,od\nEnd of run\nA1,1\n", &vec![]),
    ] {
        assert_eq!(read(text).codes(), *codes, "{text}");
    }
}
