//! Headers: their texts, the column names made from them, and their units.

use std::collections::{HashMap, HashSet};

use labdata_domain::catalog::{UnitMatch, compare_unit, reserved_column_names};
use unicode_normalization::UnicodeNormalization as _;

/// Maximum length of a column name.
const MAX_NAME: usize = 63;

/// Header of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Text as people see it, on one line.
    pub(super) text: String,
    /// Unit that stands in brackets behind the name.
    pub(super) unit: Option<String>,
}

impl Header {
    /// Reads a header: trims it, and makes line breaks and runs of blanks one blank.
    pub(super) fn of(cell: &str) -> Self {
        let mut words = cell.split_whitespace();
        // Composed, since systems differ in how they store letters with marks.
        let mut text: String = words.next().unwrap_or_default().nfc().collect();
        for word in words {
            text.push(' ');
            text.extend(word.nfc());
        }
        let unit = bracketed(&text).map(|(_, unit)| unit.to_owned());
        Self { text, unit }
    }

    /// Adds the unit that a line of units, or the file's own note, gives for the column.
    ///
    /// Two that contradict each other are both named, so that they are the unit of no column.
    pub(super) fn note_unit(&mut self, given: &str) {
        let Some(own) = &self.unit else {
            self.unit = Some(given.to_owned());
            return;
        };
        match (compare_unit(own, given), compare_unit(given, own)) {
            (UnitMatch::Same, _) | (_, UnitMatch::Same | UnitMatch::Remark) => {}
            // The brackets say something else: `Conc (raw)`.
            (UnitMatch::Remark, _) => self.unit = Some(given.to_owned()),
            _ => self.unit = Some(format!("{own} or {given}")),
        }
    }
}

/// Divides a header into its name and the unit in brackets behind it.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (open, inner) = if let Some(inner) = text.strip_suffix(')') {
        ('(', inner)
    } else {
        ('[', text.strip_suffix(']')?)
    };
    let (name, unit) = inner.rsplit_once(open)?;
    let (name, unit) = (name.trim(), unit.trim());
    (!name.is_empty() && !unit.is_empty()).then_some((name, unit))
}

/// Form in which headers are compared: signs that look alike are one.
pub(super) fn comparable(header: &str) -> String {
    header.nfkc().collect()
}

/// Letters and digits of a header in lower case, without a unit: what it has in common with the name
/// of its column.
pub(super) fn match_key(header: &str) -> String {
    let name = bracketed(header).map_or(header, |(name, _)| name);
    name.nfkc()
        .filter(|char| char.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Makes names that columns of a table can bear: lower case, `[a-z][a-z0-9_]*`, each once.
pub(super) fn column_names(headers: &[Header]) -> Vec<String> {
    let mut taken: HashSet<String> = reserved_column_names().map(str::to_owned).collect();
    let names = headers.iter().zip(1..);
    names
        .map(|(header, number)| {
            let base = column_name(&header.text);
            let base = if base.is_empty() {
                format!("column_{number}")
            } else {
                base
            };
            let mut name = base.clone();
            let mut count = 2;
            while !taken.insert(name.clone()) {
                let suffix = format!("_{count}");
                let length = base.len().min(MAX_NAME - suffix.len());
                name = format!("{}{suffix}", base.get(..length).unwrap_or_default());
                count += 1;
            }
            name
        })
        .collect()
}

fn column_name(header: &str) -> String {
    let name = bracketed(header).map_or(header, |(name, _)| name);
    let mut found = String::new();
    for char in name.nfkd() {
        match char {
            // The decomposition makes this of the micro sign as well.
            '\u{3bc}' => found.push('u'),
            '\u{df}' => found.push_str("ss"),
            _ if char.is_ascii_alphanumeric() => found.push(char.to_ascii_lowercase()),
            // Marks above and below letters, which the decomposition separates.
            '\u{300}'..='\u{36f}' => {}
            _ if !found.is_empty() && !found.ends_with('_') => found.push('_'),
            _ => {}
        }
    }
    let found = found.trim_matches('_');
    // Names of columns begin with a letter.
    let found = if found.starts_with(|first: char| first.is_ascii_digit()) {
        format!("c_{found}")
    } else {
        found.to_owned()
    };
    // ASCII by now, so that every byte is a boundary.
    let cut = found.get(..found.len().min(MAX_NAME)).unwrap_or_default();
    cut.trim_end_matches('_').to_owned()
}

/// Numbers headers that occur more than once: `Units`, `Units_2`.
pub(super) fn number_duplicates(headers: &mut [Header]) {
    // Also of headers that follow: `Units_2` may be one of them.
    let mut taken: HashSet<String> = headers
        .iter()
        .map(|header| comparable(&header.text))
        .collect();
    let mut seen = HashSet::new();
    for header in headers {
        if seen.insert(comparable(&header.text)) {
            continue;
        }
        let numbered = (2..).map(|count: u32| format!("{}_{count}", header.text));
        let free = numbered
            .into_iter()
            .find(|text| !taken.contains(&comparable(text)));
        if let Some(text) = free {
            taken.insert(comparable(&text));
            header.text = text;
        }
    }
}

/// Headers that are equal to the eye: pairs of indices.
pub(super) fn duplicates(headers: &[Header]) -> Vec<(usize, usize)> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for (index, header) in headers.iter().enumerate() {
        match first.get(&comparable(&header.text)) {
            Some(earlier) => found.push((*earlier, index)),
            None => {
                first.insert(comparable(&header.text), index);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(texts: &[&str]) -> Vec<Header> {
        texts.iter().map(|text| Header::of(text)).collect()
    }

    #[test]
    fn a_header_is_one_line_with_its_unit() {
        for (cell, text, unit) in [
            ("Vol\r\n(\u{b5}l)", "Vol (\u{b5}l)", Some("\u{b5}l")),
            (
                "  Conc.   [ng/\u{b5}l] ",
                "Conc. [ng/\u{b5}l]",
                Some("ng/\u{b5}l"),
            ),
            ("Vol [ mL ]", "Vol [ mL ]", Some("mL")),
            ("A (b) c", "A (b) c", None),
            ("(only)", "(only)", None),
            ("x ()", "x ()", None),
            ("u\u{308}ber", "\u{fc}ber", None),
        ] {
            let header = Header::of(cell);
            assert_eq!((header.text.as_str(), header.unit.as_deref()), (text, unit));
        }
    }

    #[test]
    fn a_unit_from_elsewhere_joins_that_in_the_brackets() {
        for (cell, given, unit) in [
            ("v", "mg/mL", "mg/mL"),
            ("v (raw)", "mg/mL", "mg/mL"),
            ("v (\u{b5}l)", "uL", "\u{b5}l"),
            ("v (\u{b5}l)", "Sample 1", "\u{b5}l"),
            ("v (ug/mL)", "mg/mL", "ug/mL or mg/mL"),
            ("v (foo/mL)", "mg/mL", "foo/mL or mg/mL"),
        ] {
            let mut header = Header::of(cell);
            header.note_unit(given);
            assert_eq!(header.unit.as_deref(), Some(unit), "{cell} {given}");
        }
        // Neither of two units is taken for that of a column.
        for code in ["ug/mL", "mg/mL"] {
            assert_eq!(compare_unit("ug/mL or mg/mL", code), UnitMatch::Unclear);
        }
        for code in ["s", "min"] {
            assert_eq!(compare_unit("s or min", code), UnitMatch::Unclear);
        }
    }

    #[test]
    fn names_of_columns_are_names_of_tables() {
        let found = column_names(&headers(&[
            "Well",
            "OD, 600 nm",
            "Vol (\u{b5}l)",
            "\u{b5}-Wert",
            "Gr\u{f6}\u{df}e",
            "260/280",
            "well",
            "\u{8a66}\u{6599}",
            "_x_",
            "CTID",
            "created at",
        ]));
        let expected = [
            "well",
            "od_600_nm",
            "vol",
            "u_wert",
            "grosse",
            "c_260_280",
            "well_2",
            "column_8",
            "x",
            // No column of a table can bear these names.
            "ctid_2",
            "created_at_2",
        ];
        assert_eq!(found, expected);
        let found = column_names(&headers(&["OD"; 4]));
        assert_eq!(found, ["od", "od_2", "od_3", "od_4"]);
        // The cut leaves no underscore at the end.
        let words = format!("{} b", "a".repeat(62));
        assert_eq!(column_names(&headers(&[&words])), ["a".repeat(62)]);
        let long = "a".repeat(80);
        let found = column_names(&headers(&[&long, &long]));
        assert_eq!(found[0].len(), 63);
        assert!(found[1].len() <= 63 && found[1].ends_with("_2"));
    }

    #[test]
    fn headers_match_names_without_case_punctuation_and_unit() {
        for (header, key) in [
            ("Well", "well"),
            ("Carrier type", "carriertype"),
            ("Vol. (\u{b5}l)", "vol"),
            ("OD_600", "od600"),
        ] {
            assert_eq!(match_key(header), key);
        }
    }

    #[test]
    fn headers_that_look_alike_are_duplicates() {
        let mut units = headers(&["Units", "\u{b5}l", "Units", "\u{3bc}l", "Units_2"]);
        assert_eq!(duplicates(&units), [(0, 2), (1, 3)]);
        number_duplicates(&mut units);
        let texts: Vec<&str> = units.iter().map(|header| header.text.as_str()).collect();
        assert_eq!(
            texts,
            ["Units", "\u{b5}l", "Units_3", "\u{3bc}l_2", "Units_2"]
        );
        assert_eq!(duplicates(&units), []);
        let mut equal = headers(&["a"; 3]);
        number_duplicates(&mut equal);
        let texts: Vec<&str> = equal.iter().map(|header| header.text.as_str()).collect();
        assert_eq!(texts, ["a", "a_2", "a_3"]);
    }
}
