//! Tests of units as people write them. A line has several texts, between bars.

use super::{UnitMatch, compare_unit, is_ucum, ucum_of};

const SPELLINGS: [(&str, &str); 39] = [
    (
        "uL",
        "µl|\u{3bc}L|uL|ul|ul.|\u{3395}|microliter|Microlitres|mikroliter|mcL|1 uL|1.uL",
    ),
    ("mL", "mL|ml.|Milliliter|millilitres|\u{3396}"),
    ("L", "L|l|litre|Liters"),
    ("cm3", "cm3|cm³|cm^3|cc"),
    (
        "Cel",
        "°C|\u{ba}C|\u{2da}C|\u{2103}|C|Cel|deg C|degC|Celsius|degrees Celsius|Grad Celsius",
    ),
    ("[degF]", "°F|deg F|Deg. F|Fahrenheit|\u{2109}|degF"),
    ("K", "K|Kelvin|kelvin|°K|\u{212a}"),
    ("s", "s|sec|Sec.|seconds|Sekunden"),
    ("ms", "ms|msec|milliseconds"),
    ("min", "min|Min|Min.|mins|MINUTES|Minuten"),
    ("h", "hours|hr|h|Hrs|Stunden"),
    ("d", "d|days|Tage"),
    ("mmol/L", "mM|mmol/l|mmol / L|millimolar|mmol·L⁻¹|mmol L-1"),
    (
        "ug/mL",
        "µg/ml|mcg/mL|ug per mL|µg\u{2215}mL|µg mL^-1|µg mL\u{2212}1",
    ),
    ("mg/mL", "mg per mL|mg.mL-1|Milligram/Milliliter"),
    ("g", "g|gram|gm|Gramm"),
    ("%", "%|\u{ff05}|percent|pct."),
    ("1", "1|fraction|-|10^0"),
    ("[ppth]", "‰|permille"),
    ("[ppm]", "ppm|PPM|parts per million"),
    ("Ao", "\u{c5}|\u{212b}|A\u{30a}|angstrom|\u{c5}ngström"),
    ("[lb_av]", "lb|lbs|pounds"),
    ("ku", "kDa|kilodalton"),
    ("m[IU]/mL", "mIU/mL"),
    (
        "10*3.uL",
        "10^3 uL|10³ µL|x1000 uL|×1000 µL|1e3 uL|1000 uL|10**3 uL",
    ),
    (
        "10*6/mL",
        "10^6/mL|10*6/mL|1e6/mL|1E6/mL|×10⁶/mL|x 10^6 / mL|1 x 10^6/mL|1x10^6/mL|million/mL",
    ),
    (
        "10*6{cells}/mL",
        "10^6 cells/mL|10⁶ cells per mL|1e6 cells/ml|Mio cells/mL",
    ),
    ("{cells}/mL", "cells/mL|Cells per ml|{cells}/mL|{cell}/mL"),
    // Only a word that is an annotation itself is one of them.
    ("mg{percent}", "mg{percent}"),
    ("24.h", "24.h"),
    ("uL/{well}", "µL/well|uL per well|uL/{wells}"),
    ("/mL", "/mL|1/mL|mL-1|per mL|mL⁻¹"),
    ("L/mol", "1/M|M-1|M⁻¹"),
    ("%{v/v}", "% v/v|% (v/v)"),
    // Of a share, the word is a slash as well.
    ("%/min", "%/min|% per min|% Per min"),
    ("mg/mL/h", "mg/(mL·h)|mg/mL/h"),
    ("/min", "rpm"),
    ("[g]", "x g|× g|xg"),
    ("{AU}", "AU|a.u.|arb. units"),
];

#[test]
fn spellings_of_a_unit_have_one_code() {
    for (code, texts) in SPELLINGS {
        for text in texts.split('|') {
            assert_eq!(ucum_of(text).as_deref(), Some(code), "{text}");
        }
    }
}

#[test]
fn codes_are_valid_and_their_own_spelling() {
    let codes = "ug/mL|10*3/uL|{cells}/mL|kg.m2/s2|mm[Hg]|[degF]|umol/min/mg{protein}|B[10.nV]|[m/s2/Hz^0.5]|\
        ng/(24.h)|[in_i]|''|%[slope]|100.g|{OD600}";
    for code in codes.split('|') {
        let found = ucum_of(code).unwrap();
        assert!(is_ucum(&found), "{code}: {found}");
        assert_eq!(compare_unit(code, code), UnitMatch::Same, "{code}");
    }
}

#[test]
fn what_is_not_understood_has_no_code() {
    let texts = "|2.5 uL|b|raw|OD600|2|2nd|n = 3|A1|600 nm|10E6 cells/mL|1,000 uL|mg//mL|mg/|mg/mL h|gallon|units/mL|\
        ppt|as measured|g/L (m/s)|(mL|mL)|{cells|10-3 M|well|Torr|\u{43c}\u{43b}|uL^2^2|½ mL|.|/|%/CV x|OD2|day 1";
    for text in texts.split('|') {
        assert_eq!(ucum_of(text), None, "{text}");
    }
}

#[test]
fn a_header_of_the_same_unit_fits_its_column() {
    for (code, texts) in [
        ("/mL", "cells/mL"),
        ("{cells}/mL", "/mL|cell/mL"),
        ("10*6/mL", "10^6 cells/mL|1e6/mL"),
        ("umol/min/mg{protein}", "umol/min/mg protein"),
        ("{OD600}", "OD600"),
        ("AU", "AU"),
        ("1", "AU|fraction|{OD}"),
        ("{RFU}", "RFU|rfu"),
        ("%", "% v/v|% viable|pct"),
        ("uL/{well}", "uL/well|uL/wells"),
        ("[pH]", "pH"),
        ("mol/L", "mol/l|M|molar"),
        ("mg.mL-1", "mg/mL"),
    ] {
        for text in texts.split('|') {
            assert_eq!(compare_unit(text, code), UnitMatch::Same, "{text} {code}");
        }
    }
}

#[test]
fn a_header_of_another_unit_does_not() {
    for (code, texts) in [
        ("s", "Min|Min.|msec|hrs|MINUTES|Stunden|ms"),
        (
            "uL",
            "10^3 uL|10³ µL|x1000 uL|milliliter|ml.|litre|cm³|µL/well|cells|mcg|Mikrogramm",
        ),
        ("Cel", "deg F|Kelvin|\u{2109}|° F|degrees fahrenheit"),
        ("%", "1|fraction|ppm|‰|-|ratio|mg/mL"),
        ("1", "%|percent|% v/v"),
        ("10*6/mL", "cells/mL|10^6 cells/L|1e5/mL|/mL|10⁶/µL"),
        ("{cells}/mL", "10^6 cells/mL|copies/mL|cells/L|CFU/mL"),
        ("ug/mL", "ppm|mg per mL|mg mL⁻¹|ng/\u{3bc}l/well"),
        ("nm", "\u{c5}|angstrom|microns|nanometer/s"),
        ("g", "mcg|lb|ounces|kilogram|Mg"),
        ("umol/min/mg{protein}", "umol/min/mg|umol/min"),
    ] {
        for text in texts.split('|') {
            assert_eq!(compare_unit(text, code), UnitMatch::Other, "{text} {code}");
        }
    }
}

#[test]
fn what_may_be_a_unit_is_unclear() {
    let texts = "10E6 cells/mL|foo/mL|2 h x|600 nm|2|log10|log|b|n/a|gallons|units|Torr|KG|ppt|psu|SD|x|*|mg^x|\
        \u{43c}\u{43b}|\u{43c}\u{438}\u{43d}\u{443}\u{442}\u{44b}|\u{5fae}\u{5347}|after 2 h|at 37 °C|2 of 3|% ~|\
        day 1|cubic meters|± 3|n =|A1|1,000 uL|10^3uL|per kit";
    for text in texts.split('|') {
        assert_eq!(compare_unit(text, "pL"), UnitMatch::Unclear, "{text}");
    }
}

#[test]
fn plain_words_are_remarks() {
    let texts = "raw|corrected|blank corrected|blank-corrected|mean|Sample 1|as measured|n=3|N = 12|NanoDrop|mean of 3|\
        sample|well|plate 2, run 3|gemäß Protokoll|Microplate|avg.";
    for text in texts.split('|') {
        assert_eq!(compare_unit(text, "uL"), UnitMatch::Remark, "{text}");
    }
}
