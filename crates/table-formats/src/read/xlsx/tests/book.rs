//! Styles and books with several sheets.

use std::fmt::Write as _;

/// Styles: 1 a date, 2 a date with a time, 3 a time, 4 percent, 5 a rounded number,
/// 6 a number with leading zeros, 7 one with hyphens, 8 one behind letters.
pub(super) const STYLES: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
<numFmts count="4"><numFmt numFmtId="164" formatCode="h:mm:ss"/>
<numFmt numFmtId="165" formatCode="00000"/><numFmt numFmtId="166" formatCode="000-00-0000"/>
<numFmt numFmtId="167" formatCode="&quot;PL&quot;0"/></numFmts>
<cellXfs count="9"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="164"/>
<xf numFmtId="9"/><xf numFmtId="2"/><xf numFmtId="165"/><xf numFmtId="166"/>
<xf numFmtId="167"/></cellXfs></styleSheet>"#;

/// Styles with these formats; style 0 has none.
pub(super) fn styles_of(formats: &[&str]) -> String {
    let (mut codes, mut styles) = (String::new(), String::new());
    for (code, id) in formats.iter().zip(200..) {
        let escaped = code
            .replace('&', "&amp;")
            .replace('"', "&quot;")
            .replace('<', "&lt;");
        write!(
            codes,
            "<numFmt numFmtId=\"{id}\" formatCode=\"{escaped}\"/>"
        )
        .unwrap();
        write!(styles, "<xf numFmtId=\"{id}\"/>").unwrap();
    }
    format!(
        "<styleSheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><numFmts>{codes}</numFmts>\
         <cellXfs><xf numFmtId=\"0\"/>{styles}</cellXfs></styleSheet>"
    )
}

/// A book with sheets of these names and states, and where it finds them.
pub(super) fn workbook_of(sheets: &[(&str, &str)]) -> (String, String) {
    const NAMESPACE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let (mut entries, mut relations) = (String::new(), String::new());
    for ((name, state), number) in sheets.iter().zip(1..) {
        write!(
            entries,
            "<sheet name=\"{name}\" sheetId=\"{number}\" state=\"{state}\" r:id=\"rId{number}\"/>"
        )
        .unwrap();
        write!(
            relations,
            "<Relationship Id=\"rId{number}\" Target=\"worksheets/sheet{number}.xml\" \
             Type=\"{NAMESPACE}/worksheet\"/>"
        )
        .unwrap();
    }
    (
        format!("<workbook xmlns:r=\"{NAMESPACE}\"><sheets>{entries}</sheets></workbook>"),
        format!("<Relationships>{relations}</Relationships>"),
    )
}
