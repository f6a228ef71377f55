//! Signs that a text is in an encoding of DOS or of the Mac. These are not detected, and their letters are other
//! characters in what is: mostly windows-1252.

use encoding_rs::{Encoding, IBM866, WINDOWS_1252};

use super::encoding::UNIT_SIGNS;

/// Number of bytes on either side of a sign that an excerpt has.
const CONTEXT: usize = 20;

/// Š, Ž, š, ž and Ÿ of windows-1252.
const RARE_LETTERS: [u8; 5] = [0x8a, 0x8e, 0x9a, 0x9e, 0x9f];

/// Units behind the byte of DOS for µ.
const MICRO_UNITS: [&[u8]; 10] = [
    b"l", b"L", b"g", b"m", b"M", b"s", b"A", b"V", b"mol", b"kat",
];

/// A word that may be in another encoding than the one that was detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::read) struct Improbable {
    word: Vec<u8>,
    pub(in crate::read) because: Because,
}

impl Improbable {
    pub(in crate::read) fn word_in(&self, encoding: &'static Encoding) -> String {
        let (word, _) = encoding.decode_without_bom_handling(&self.word);
        word.trim().to_owned()
    }
}

/// Why a word may be in another encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum Because {
    /// It is improbable in all encodings but those of DOS and of the Mac.
    OldSystem,
    /// It has letters beyond ASCII, and the file too few of them to tell its alphabet.
    FewLetters,
}

/// Signs in a text that is no UTF-8.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// Number of bytes beyond ASCII.
    beyond: usize,
    /// Those of them between two of ASCII.
    alone: usize,
    /// True if letters with marks stand where all encodings but those of DOS and of the Mac have them.
    has_usual_letters: bool,
    /// The first words that are improbable in windows-1252, and in each encoding of one byte per character.
    improbable: Option<Vec<u8>>,
    degree: Option<Vec<u8>>,
    /// The first word with a letter that few languages have which windows-1252 is for, and with any other byte.
    rare_letter: Option<Vec<u8>>,
    first: Option<Vec<u8>>,
    /// The first word with three letters beyond ASCII together, which languages of windows-1252 do not have.
    together: Option<Vec<u8>>,
}

impl Signs {
    /// Looks at the bytes of a chunk; those beyond its ends count as blanks.
    pub(super) fn add(&mut self, text: &[u8]) {
        let bytes = text.iter().copied().enumerate();
        for (at, byte) in bytes.filter(|(_, byte)| !byte.is_ascii()) {
            let beside = Beside::of(text, at);
            self.beyond += 1;
            self.alone += usize::from(beside.before.is_ascii() && beside.after.is_ascii());
            self.has_usual_letters |= byte >= 0xa0 && !UNIT_SIGNS.contains(&byte);
            let note = |word: &mut Option<Vec<u8>>, is_sign: bool| {
                if word.is_none() && is_sign {
                    *word = Some(word_at(text, at));
                }
            };
            note(&mut self.first, true);
            let is_together = [beside.before, byte, beside.after]
                .iter()
                .all(|it| is_letter(*it) && *it >= 0xc0);
            note(&mut self.together, is_together);
            note(&mut self.rare_letter, RARE_LETTERS.contains(&byte));
            if self.degree.is_none() {
                note(&mut self.degree, is_degree(byte, beside));
            }
            if self.improbable.is_none() {
                note(&mut self.improbable, is_improbable(text, at));
            }
        }
    }

    /// Returns whether the text has no characters of several bytes, which stand together in languages that have them.
    pub(super) const fn are_single_bytes(&self) -> bool {
        self.alone * 10 >= self.beyond * 9
    }

    /// Returns the first word that makes an encoding doubtful which was detected by few letters or by many.
    pub(super) fn improbable_in(
        &self,
        encoding: &'static Encoding,
        by_few: bool,
    ) -> Option<Improbable> {
        // An encoding of DOS that is detected.
        if !encoding.is_single_byte() || encoding == IBM866 {
            return None;
        }
        let is_common = encoding == WINDOWS_1252;
        let by_place = self.improbable.as_ref().filter(|_| is_common);
        let letter = if is_common {
            &self.rare_letter
        } else {
            &self.first
        };
        let by_letters = letter.as_ref().filter(|_| !self.has_usual_letters);
        let old = by_place.or(self.degree.as_ref()).or(by_letters);
        // Alphabets share their bytes: a short word of one is often a word of another.
        let few = if is_common {
            &self.together
        } else {
            &self.first
        };
        let few = few.as_ref().filter(|_| by_few);
        let old = old.map(|word| (word, Because::OldSystem));
        let (word, because) = old.or(few.map(|word| (word, Because::FewLetters)))?;
        Some(Improbable {
            word: word.clone(),
            because,
        })
    }
}

/// Bytes beside another one.
#[derive(Clone, Copy)]
struct Beside {
    before: u8,
    after: u8,
    next: u8,
}

impl Beside {
    fn of(text: &[u8], at: usize) -> Self {
        // Beyond the ends there is nothing, as there is beside a delimiter.
        let byte = |at: Option<usize>| at.and_then(|at| text.get(at)).copied().unwrap_or(b'\n');
        Self {
            before: byte(at.checked_sub(1)),
            after: byte(at.checked_add(1)),
            next: byte(at.checked_add(2)),
        }
    }
}

/// The field around a byte, as far as a message needs it.
fn word_at(text: &[u8], at: usize) -> Vec<u8> {
    let is_end = |byte: &&u8| matches!(byte, b',' | b';' | b'\t' | b'|' | b'"' | b'\r' | b'\n');
    let (before, after) = text.split_at(at);
    let before = before.iter().rev().take(CONTEXT);
    let length = before.take_while(|byte| !is_end(byte)).count();
    let after = after.iter().take(CONTEXT);
    let end = at + after.take_while(|byte| !is_end(byte)).count();
    text.get(at - length..end).unwrap_or_default().to_vec()
}

/// Returns whether a byte stands for ° in front of a unit: ¡ of windows-1252 on the Mac, and ø in DOS.
fn is_degree(byte: u8, beside: Beside) -> bool {
    let is_unit = matches!(beside.after, b'C' | b'F') && !is_letter(beside.next);
    matches!(byte, 0xa1 | 0xf8) && is_unit && !is_letter(beside.before)
}

/// Returns whether a byte does not fit to those beside it. Each of its characters occurs, but not there.
fn is_improbable(text: &[u8], at: usize) -> bool {
    let Beside { before, after, .. } = Beside::of(text, at);
    let sign = text.get(at).copied().unwrap_or_default();
    let is_in_word = || is_letter(before) && is_letter(after);
    match sign {
        // Not assigned.
        0x81 | 0x8d | 0x8f | 0x90 | 0x9d => true,
        // Low quotation marks, which open a quotation: é and ä of DOS.
        0x82 | 0x84 => is_letter(before),
        // €, †, ‡, ‰, ˜, ™: also in front of a word.
        0x80 | 0x86 | 0x87 | 0x89 | 0x98 | 0x99 => is_in_word() || after.is_ascii_lowercase(),
        // Other signs within a word; not dashes, dots, apostrophes and signs of units.
        0x88 | 0x8b | 0x93..=0x95 | 0x9b | 0xa2..=0xa7 | 0xac | 0xaf | 0xb6 | 0xbc..=0xbf => {
            is_in_word()
        }
        // Capital letters within words in small ones: ä, å, é and ü of the Mac.
        0x8a | 0x8c | 0x8e | 0x9f => {
            before.is_ascii_lowercase() || is_letter(before) && after.is_ascii_lowercase()
        }
        0xa1 => is_in_word(),
        // æ for µ.
        0xe6 => !is_letter(before) && is_micro_unit(before, text.get(at + 1..).unwrap_or_default()),
        // ñ for ±.
        0xf1 => is_between_numbers(text, at),
        // ý and ü for ² and ³.
        0xfc | 0xfd => {
            let head = text.get(..at).unwrap_or_default();
            let is_length = head.ends_with(b"cm") || head.ends_with(b"mm");
            let first = at.checked_sub(3).and_then(|at| text.get(at));
            is_length && !first.copied().is_some_and(is_letter) && !is_letter(after)
        }
        _ => false,
    }
}

const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
        || matches!(byte, 0x8a | 0x8c | 0x8e | 0x9a | 0x9c | 0x9e | 0x9f)
        // Not × and ÷.
        || byte >= 0xc0 && byte != 0xd7 && byte != 0xf7
}

/// Returns whether a unit follows that often has the prefix µ.
fn is_micro_unit(before: u8, text: &[u8]) -> bool {
    let length = text.iter().take_while(|byte| is_letter(**byte)).count();
    let (unit, after) = text.split_at(length);
    // `æg` alone is an egg.
    let is_egg = unit == b"g" && !matches!(before, b'(' | b'[') && after.first() != Some(&b'/');
    MICRO_UNITS.contains(&unit) && !is_egg
}

/// Returns whether numbers stand on both sides, as beside ±.
fn is_between_numbers(text: &[u8], at: usize) -> bool {
    let (before, after) = text.split_at(at);
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let before = before.iter().rev().find(|byte| **byte != b' ');
    let after = after.iter().skip(1).find(|byte| **byte != b' ');
    is_digit(before) && is_digit(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn improbable_word(text: &[u8]) -> Option<String> {
        let mut signs = Signs::default();
        signs.add(text);
        let found = signs.improbable_in(WINDOWS_1252, true)?;
        Some(found.word_in(WINDOWS_1252))
    }

    #[test]
    fn bytes_of_dos_and_of_the_mac_are_improbable() {
        for (text, word) in [
            // µ, °, ±, ² and ³ of DOS.
            (&b"well;vol (\xe6l)\nA1;5\n"[..], "vol (\u{e6}l)"),
            (b"5 \xe6mol/l", "5 \u{e6}mol/l"),
            (b"c (\xe6g)\n", "c (\u{e6}g)"),
            (b"c;\xe6g/ml;5", "\u{e6}g/ml"),
            (b"name\t37 \xf8C\t5", "37 \u{f8}C"),
            (b"5 \xf1 0.1", "5 \u{f1} 0.1"),
            (b"area (mm\xfd)", "area (mm\u{fd})"),
            (b"cells/cm\xfc", "cells/cm\u{fc}"),
            // ä, ö, ü, Ö, é and ñ of DOS.
            (b"Ger\x84t", "Ger\u{201e}t"),
            (b"L\x94sung,5", "L\u{201d}sung"),
            (b"M\x81ller", "M\u{81}ller"),
            (b"\x99l", "\u{2122}l"),
            (b"mesur\x82;5", "mesur\u{201a}"),
            (b"ni\xa4o", "ni\u{a4}o"),
            // °, ä, ü, Ü, ß, é, ø and æ of the Mac.
            (b"temp (\xa1C)", "temp (\u{a1}C)"),
            (b"Sa\xa1ra", "Sa\u{a1}ra"),
            (b"Ger\x8at", "Ger\u{160}t"),
            (b"M\x9fller", "M\u{178}ller"),
            (b"\x86berstand", "\u{2020}berstand"),
            (b"gr\x9a\xa7e", "gr\u{161}\u{a7}e"),
            (b"mesur\x8e", "mesur\u{17d}"),
            (b"r\xbfdgr\xbfd", "r\u{bf}dgr\u{bf}d"),
            (b"L\x9asung;5 \xb5l", "L\u{161}sung"),
            (b"bl\xbeb\x8cr", "bl\u{be}b\u{152}r"),
        ] {
            assert_eq!(improbable_word(text).as_deref(), Some(word), "{word}");
        }
    }

    #[test]
    fn texts_in_windows_1252_are_not_doubted() {
        for text in [
            "well;vol (µl);37 °C;5 ± 0.1;mm²;cm³;10³ cells",
            "Größe;Prüfer;Äpfel;schön;Öl;für Jürgen;Maß;weiß",
            "Échantillon;mesuré;prélevé à l’été;déjà;œuvre;cœur;Œuvre",
            "prøve;måling;rødgrød;blåbær;æble;et æg;æg;Ørsted;Ångström;ø",
            "muestra;año;niño;¡Cuidado!;¿qué?;1 año;5 ñandús",
            "Škoda;Žižka;Plzeňský;dobrý;Š;Ž",
            "“quoted”—dash;„Probe“;‚so‘;don’t;A–B;wait…what;Tween™ 20;Triton®;§ 5;5 €;€5;100£;• item;*†;‰",
            "naïve;façade;Ÿ;L’Haÿ;½;¼ cup;5×10;«mot»;©2024",
        ] {
            let (bytes, ..) = WINDOWS_1252.encode(text);
            assert_eq!(improbable_word(&bytes), None, "{text}");
        }
    }
}
