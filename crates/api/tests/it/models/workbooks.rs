//! Excel workbooks for tests, also ones that no program would write.

use std::fmt::Write as _;

use super::workbook_package::{PACKAGE, RELATIONS, WORKBOOK};

/// Style 1 is a date, style 2 a date with a time.
const STYLES: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
<cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/>
<xf numFmtId="22" applyNumberFormat="1"/></cellXfs></styleSheet>"#;

/// Parts of an archive.
pub(super) const SHEET: &str = "xl/worksheets/sheet1.xml";
pub(crate) const SHARED: &str = "xl/sharedStrings.xml";
pub(super) const BOOK: &str = "xl/workbook.xml";
pub(super) const BOOK_RELATIONS: &str = "xl/_rels/workbook.xml.rels";

/// A part of an archive.
struct Part {
    name: String,
    /// 0: as it is; 8: deflated.
    method: u16,
    stored: Vec<u8>,
    crc: u32,
    size: u32,
}

/// A workbook, part by part.
pub(crate) struct Workbook(Vec<Part>);

impl Workbook {
    /// A workbook whose only sheet has that XML inside of `sheetData`.
    pub(crate) fn of_rows(rows: &str) -> Self {
        Self::of_sheet(&format!(
            "<worksheet><sheetData>{rows}</sheetData></worksheet>"
        ))
    }

    /// A workbook whose only sheet is that XML.
    pub(super) fn of_sheet(sheet: &str) -> Self {
        Self(Vec::new())
            .with("_rels/.rels", PACKAGE)
            .with(BOOK, WORKBOOK)
            .with(BOOK_RELATIONS, RELATIONS)
            .with("xl/styles.xml", STYLES)
            .with(SHEET, sheet)
    }

    /// Replaces or adds a part.
    pub(crate) fn with(self, name: &str, content: &str) -> Self {
        let stored = content.as_bytes().to_vec();
        self.with_part(Part {
            name: name.to_owned(),
            method: 0,
            crc: crc32(&stored),
            size: stored.len().try_into().unwrap(),
            stored,
        })
    }

    /// Replaces or adds a part of that many spaces, compressed to less than a hundredth, which declares
    /// that size.
    pub(crate) fn with_spaces(self, name: &str, count: usize, declared: usize) -> Self {
        self.with_part(Part {
            name: name.to_owned(),
            method: 8,
            stored: deflated_spaces(count),
            // Wrong: a reader that compares it has unpacked everything.
            crc: 0,
            size: declared.try_into().unwrap(),
        })
    }

    fn with_part(mut self, part: Part) -> Self {
        self.0.retain(|known| known.name != part.name);
        self.0.push(part);
        self
    }

    /// The file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (mut file, mut directory) = (Vec::new(), Vec::new());
        for part in &self.0 {
            let offset = u32::try_from(file.len()).unwrap();
            let mut header = Vec::new();
            // Version, flags, method, time and date.
            for field in [20_u16, 0, part.method, 0, 0x21] {
                header.extend(field.to_le_bytes());
            }
            let length = u32::try_from(part.stored.len()).unwrap();
            for field in [part.crc, length, part.size] {
                header.extend(field.to_le_bytes());
            }
            header.extend(u16::try_from(part.name.len()).unwrap().to_le_bytes());
            header.extend([0, 0]);
            file.extend(b"PK\x03\x04");
            file.extend(&header);
            file.extend(part.name.as_bytes());
            file.extend(&part.stored);
            directory.extend(b"PK\x01\x02\x14\x00");
            directory.extend(&header);
            // Comment, disk and attributes.
            directory.extend([0; 10]);
            directory.extend(offset.to_le_bytes());
            directory.extend(part.name.as_bytes());
        }
        let start = u32::try_from(file.len()).unwrap();
        let count = u16::try_from(self.0.len()).unwrap().to_le_bytes();
        file.extend(&directory);
        file.extend(b"PK\x05\x06\0\0\0\0");
        file.extend([count, count].concat());
        file.extend(u32::try_from(directory.len()).unwrap().to_le_bytes());
        file.extend(start.to_le_bytes());
        file.extend([0, 0]);
        file
    }
}

/// A row of cells.
pub(crate) fn row(number: u32, cells: &[String]) -> String {
    format!("<row r=\"{number}\">{}</row>", cells.concat())
}

/// A cell with a text.
pub(super) fn text(place: &str, text: &str) -> String {
    format!("<c r=\"{place}\" t=\"inlineStr\"><is><t>{text}</t></is></c>")
}

/// A cell with a number.
pub(super) fn number(place: &str, number: &str) -> String {
    format!("<c r=\"{place}\"><v>{number}</v></c>")
}

/// A row of texts that name columns.
pub(crate) fn header(names: &[&str]) -> String {
    let mut cells = String::new();
    for (name, letter) in names.iter().zip('A'..='Z') {
        write!(cells, "{}", text(&format!("{letter}1"), name)).unwrap();
    }
    row(1, &[cells])
}

/// The checksum of zip archives.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

/// A deflated block: one space, and repetitions of it, 258 bytes in 13 bits each.
fn deflated_spaces(count: usize) -> Vec<u8> {
    // Length 258 (code 285) and distance 1 (code 0), of the fixed codes.
    const REPEATED: &str = "1100010100000";
    let mut bits = Bits::default();
    // The last block, of fixed codes; then the space, whose code is 0x30 more than the byte.
    bits.push("110");
    bits.push("01010000");
    for _ in 0..count / 258 {
        bits.push(REPEATED);
    }
    // The end of the block.
    bits.push("0000000");
    bits.bytes
}

/// Bits, the lowest of a byte first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn push(&mut self, bits: &str) {
        for bit in bits.bytes() {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let (b'1', Some(last)) = (bit, self.bytes.last_mut()) {
                *last |= 1 << (self.count % 8);
            }
            self.count += 1;
        }
    }
}
