//! Signs in which people write a unit, as those of UCUM.

use unicode_normalization::UnicodeNormalization as _;

/// Superscripts, of which NFKC makes digits and signs.
const RAISED: [char; 12] = [
    '\u{2070}', '\u{b9}', '\u{b2}', '\u{b3}', '\u{2074}', '\u{2075}', '\u{2076}', '\u{2077}',
    '\u{2078}', '\u{2079}', '\u{207a}', '\u{207b}',
];

/// Signs that look like another one.
const ALIKE: [(&str, char); 6] = [
    // Micro signs are one after NFKC.
    ("\u{3bc}", 'u'),
    ("\u{d7}", 'x'),
    ("\u{b7}\u{22c5}\u{2219}\u{2022}\u{2027}", '.'),
    ("\u{2044}\u{2215}\u{f7}", '/'),
    ("\u{2010}\u{2011}\u{2012}\u{2013}\u{2212}", '-'),
    ("\u{2126}", '\u{3a9}'),
];

/// Returns a text in NFKC with one sign for each meaning, and single blanks.
pub(super) fn plain_signs(text: &str) -> String {
    let mut marked = String::new();
    let mut was_raised = false;
    for sign in text.chars() {
        let is_raised = RAISED.contains(&sign);
        // Before NFKC, which makes 103 of a ten to the third.
        if is_raised && !was_raised && !marked.is_empty() {
            marked.push('^');
        }
        was_raised = is_raised;
        marked.push(match sign {
            // NFKC makes a letter and a blank of these signs, which keyboards offer for a degree.
            '\u{ba}' | '\u{2da}' => '\u{b0}',
            _ => sign,
        });
    }
    let plain = marked.nfkc().map(|sign| {
        let alike = ALIKE.iter().find(|(signs, _)| signs.contains(sign));
        alike.map_or(sign, |(_, plain)| *plain)
    });
    let plain: String = plain.collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
