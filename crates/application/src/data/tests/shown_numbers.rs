//! Imports of workbooks whose numbers are shown as times, percentages, or with a unit.

use std::{collections::BTreeMap, fmt::Write as _};

use labdata_domain::{catalog::ColumnDefinition, scalar::DataType};
use labdata_table_formats::read::ReadOptions;

use super::{import_as, round_trips::package};

/// Styles: 1 an elapsed time, 2 a percentage, 3 milliliters, 4 a limit.
const STYLES: &str = r#"<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts>
<numFmt numFmtId="200" formatCode="[h]:mm:ss"/><numFmt numFmtId="201" formatCode="0.0%"/>
<numFmt numFmtId="202" formatCode="0.0&quot; mL&quot;"/><numFmt numFmtId="203" formatCode="&quot;&lt;&quot;0.0"/>
</numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="200"/><xf numFmtId="201"/><xf numFmtId="202"/>
<xf numFmtId="203"/></cellXfs></styleSheet>"#;

const PLAIN: u8 = 0;
const ELAPSED: u8 = 1;
const PERCENT: u8 = 2;
const MILLILITERS: u8 = 3;
const LIMIT: u8 = 4;

/// Imports cells, each with a style, into the column `v`; returns their values, or the first problem.
fn import(
    header: &str,
    unit: Option<&str>,
    cells: &[(u8, &str)],
    is_chosen: bool,
) -> Result<Vec<String>, String> {
    let mut rows = format!("<row><c t=\"inlineStr\"><is><t>{header}</t></is></c></row>");
    for (style, number) in cells {
        write!(rows, "<row><c s=\"{style}\"><v>{number}</v></c></row>").unwrap();
    }
    let mut column = ColumnDefinition::new("v", DataType::Float);
    column.unit = unit.map(str::to_owned);
    let chosen = is_chosen.then(|| (header.to_owned(), Some("v".to_owned())));
    let chosen: BTreeMap<_, _> = chosen.into_iter().collect();
    let bytes = package(&rows, STYLES);
    let found = import_as(bytes, vec![column], chosen, ReadOptions::default());
    let found = found.map_err(|problems| problems[0].message.clone())?;
    let cells = found.into_iter().flatten().flatten();
    Ok(cells.map(|cell| cell.to_json().to_string()).collect())
}

#[test]
fn a_number_is_stored_as_it_is_shown_or_refused() {
    let ten_minutes = (ELAPSED, "0.006944444444444444");
    let viability = (PERCENT, "0.985");
    for (header, unit, cells, expected) in [
        ("v", Some("s"), &[ten_minutes][..], Ok(&["600"][..])),
        ("v (min)", Some("s"), &[ten_minutes], Ok(&["600"])),
        ("v", None, &[ten_minutes], Ok(&["600"])),
        ("v (s)", None, &[ten_minutes], Ok(&["600"])),
        ("v (hh:mm:ss)", None, &[ten_minutes], Ok(&["600"])),
        (
            "v (min)",
            None,
            &[ten_minutes],
            Err("\"min\" in the header"),
        ),
        ("v [h]", None, &[ten_minutes], Err("\"h\" in the header")),
        ("v [h]", Some("min"), &[ten_minutes], Err("are in min")),
        ("v", Some("min"), &[ten_minutes], Err("read as values in s")),
        (
            "v (min)",
            Some("min"),
            &[ten_minutes],
            Err("read as values in s"),
        ),
        (
            "v",
            Some("s"),
            &[ten_minutes, (PLAIN, "30")],
            Err("plain numbers"),
        ),
        (
            "v (%)",
            Some("%"),
            &[viability, (PLAIN, "97.5")],
            Ok(&["98.5", "97.5"]),
        ),
        ("v", Some("%"), &[viability], Ok(&["98.5"])),
        ("v", Some("1"), &[viability], Ok(&["0.985"])),
        (
            "v",
            Some("%"),
            &[viability, (PLAIN, "97.5")],
            Err("shows 98.5%"),
        ),
        ("v (mL)", Some("mL"), &[(MILLILITERS, "1.5")], Ok(&["1.5"])),
        ("v", Some("mL"), &[(MILLILITERS, "1.5")], Ok(&["1.5"])),
        ("v", Some("uL"), &[(MILLILITERS, "1.5")], Err("in mL")),
        (
            "v",
            Some("uL"),
            &[(MILLILITERS, "1.5"), (PLAIN, "2")],
            Err("\"mL\" of its format"),
        ),
        ("v", Some("uL"), &[(LIMIT, "5")], Err("\"<\" of its format")),
    ] {
        let found = import(header, unit, cells, false);
        match (&found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{header} {unit:?}"),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            _ => panic!("{header} {unit:?} {found:?}"),
        }
    }
}

#[test]
fn a_chosen_column_does_not_change_the_unit_of_cells() {
    for (unit, cell) in [
        ("h", (ELAPSED, "1.25")),
        ("mg", (PERCENT, "0.5")),
        ("uL", (MILLILITERS, "1.5")),
    ] {
        assert!(
            import("Value", Some(unit), &[cell], true).is_err(),
            "{unit}"
        );
    }
    let found = import("Value", Some("mL"), &[(MILLILITERS, "1.5")], true);
    assert_eq!(found, Ok(vec!["1.5".to_owned()]));
}
