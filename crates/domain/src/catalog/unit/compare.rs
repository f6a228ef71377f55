//! Brackets in headers: units, and words that only distinguish columns.

use super::{
    signs::plain_signs,
    spellings::{is_unclear, per, word},
    written::Unit,
};

/// Relation of the text in a header's brackets to the unit of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitMatch {
    /// It is this unit.
    Same,
    /// It is another unit.
    Other,
    /// It may be a unit that is not known.
    Unclear,
    /// It is a remark: `raw`, `Sample 1`, `n = 3`.
    Remark,
}

/// Compares the text in a header's brackets to the UCUM code of a column's unit.
#[must_use]
pub fn compare_unit(text: &str, code: &str) -> UnitMatch {
    if text.trim() == code || is_annotation_written_out(text, code) {
        return UnitMatch::Same;
    }
    match (Unit::of(text), Unit::of(code)) {
        (Some(unit), Some(own)) if unit.is_same(&own) => UnitMatch::Same,
        (Some(_), _) => UnitMatch::Other,
        (None, _) if is_remark(text) => UnitMatch::Remark,
        (None, _) => UnitMatch::Unclear,
    }
}

/// Returns whether a text is a code with its annotations written out: `umol/min/mg protein`.
fn is_annotation_written_out(text: &str, code: &str) -> bool {
    let bare = |text: &str| plain_signs(text).replace(['{', '}', ' '], "");
    code.contains('{') && bare(text) == bare(code)
}

/// Short words that are no unit. A longer word is none unless a table has it.
const SHORT_WORDS: &str = "raw as at of in on by to and or the not no net dry wet new old all any mix avg mean max \
    sum rep reps run set low high mid left top pos neg ctrl ref true dil pool calc corr norm adj est auto man pre \
    post free with from data flow fit peak area wash bulk full half main one two both own sub non lot lab kit name \
    note only roh und von mit ohne leer neu alt soll ist";

/// Length from which a word is no symbol.
const LONG: usize = 5;

/// Returns whether a text in brackets is a remark: plain words, and numbers behind them.
fn is_remark(text: &str) -> bool {
    let text = plain_signs(text).to_lowercase();
    let is_number = |word: &str| word.chars().all(|sign| sign.is_ascii_digit());
    // A number of repetitions: `n = 3`.
    if let Some(count) = text
        .strip_prefix('n')
        .and_then(|it| it.trim().strip_prefix('='))
    {
        let count = count.trim();
        return !count.is_empty() && is_number(count);
    }
    let mut words = text
        .split(|sign| " -_,;:.&+'\"#".contains(sign))
        .filter(|word| !word.is_empty())
        .peekable();
    // A number in front belongs to a unit: `2 h`.
    words.peek().is_some_and(|first| !is_number(first))
        && words.all(|word| is_number(word) || is_plain_word(word))
}

fn is_plain_word(text: &str) -> bool {
    // Units in other scripts are not known, so no word of theirs is known to be none.
    let is_latin = text
        .chars()
        .all(|sign| sign.is_alphabetic() && sign < '\u{250}');
    let is_long = text.chars().count() >= LONG;
    let is_listed = || SHORT_WORDS.split_whitespace().any(|word| word == text);
    let is_known = is_long || is_listed() || per(text).is_some();
    is_latin && is_known && !is_unclear(text) && word(text).is_none()
}
