//! Signs in which people write a unit, as those of UCUM.

use unicode_normalization::UnicodeNormalization as _;

/// Superscripts, and below them what they raise.
const RAISED: [(char, char); 12] = [
    ('\u{2070}', '0'),
    ('\u{b9}', '1'),
    ('\u{b2}', '2'),
    ('\u{b3}', '3'),
    ('\u{2074}', '4'),
    ('\u{2075}', '5'),
    ('\u{2076}', '6'),
    ('\u{2077}', '7'),
    ('\u{2078}', '8'),
    ('\u{2079}', '9'),
    ('\u{207a}', '+'),
    ('\u{207b}', '-'),
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
        let raised = RAISED.iter().find(|(raised, _)| *raised == sign);
        // Before NFKC, which makes 103 of a ten to the third.
        if raised.is_some() && !was_raised && !marked.is_empty() {
            marked.push('^');
        }
        was_raised = raised.is_some();
        marked.push(match (raised, sign) {
            (Some((_, digit)), _) => *digit,
            // NFKC makes a letter and a blank of these signs, which keyboards offer for a degree.
            (None, '\u{ba}' | '\u{2da}') => '\u{b0}',
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
