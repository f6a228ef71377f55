//! The directory of a workbook's archive.

use super::*;

#[test]
fn a_part_that_the_directory_does_not_name_is_damage() {
    let cells = row(1, &[inline("A1", "a")]) + &row(2, &[number("A2", "1")]);
    let sheet = format!("<worksheet><sheetData>{cells}</sheetData></worksheet>");
    let intact = packed(&[
        ("xl/workbook.xml", WORKBOOK),
        ("xl/_rels/workbook.xml.rels", RELATIONS),
        ("xl/worksheets/sheet1.xml", &sheet),
        // A part that the sheet can be read without.
        ("xl/notes.xml", "<notes/>"),
    ]);
    let name = b"xl/styles.xml";
    let in_directory = memchr::memmem::rfind(&intact, name).unwrap();
    let mut renamed = intact.clone();
    renamed[in_directory] = b'X';
    let mut uncounted = intact.clone();
    let end = memchr::memmem::rfind(&intact, b"PK\x05\x06").unwrap();
    // The number of parts, on this disk and on all.
    uncounted[end + 8] -= 1;
    uncounted[end + 10] -= 1;
    let mut commented = uncounted.clone();
    let entries: Vec<usize> = memchr::memmem::find_iter(&intact, b"PK\x01\x02").collect();
    let [.., last_counted, behind] = entries[..] else {
        panic!("a workbook has several parts");
    };
    // Its comment is as long as no byte alone can say, and is part of the directory.
    commented[last_counted + 32..last_counted + 34].copy_from_slice(&300_u16.to_le_bytes());
    let size = end + 12..end + 16;
    let length = u32::from_le_bytes(commented[size.clone()].try_into().unwrap()) + 300;
    commented[size].copy_from_slice(&length.to_le_bytes());
    commented.splice(behind..behind, [b' '; 300]);
    for (what, bytes) in [
        ("renamed", renamed),
        ("uncounted", uncounted),
        ("commented", commented),
    ] {
        let refused = open_with(bytes, json!({})).err().unwrap();
        assert!(
            matches!(refused, ReadError::Damaged | ReadError::NotWorkbook),
            "{what}: {refused}"
        );
    }
    open_with(intact, json!({})).unwrap();
}
