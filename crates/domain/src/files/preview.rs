//! Text previews of files.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Number of bytes displayed from the start of a file.
pub const PREVIEW_BYTES: u64 = 65_536;
/// Maximum size in bytes of a file with a preview.
pub const MAX_PREVIEWED_BYTES: u64 = 10_485_760;

/// The start of a file as text, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preview {
    /// Text.
    Text {
        /// The text without a byte order mark.
        text: String,
        /// True if the file is longer than the preview.
        truncated: bool,
    },
    /// No preview.
    Skipped(Skipped),
}

/// Reason why a file has no preview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// It is larger than [`MAX_PREVIEWED_BYTES`].
    TooLarge,
    /// It is binary.
    NotText,
}

impl Skipped {
    /// All reasons.
    pub const ALL: [Self; 2] = [Self::TooLarge, Self::NotText];

    /// Returns the reason as the API shows it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "file too large",
            Self::NotText => "not text",
        }
    }
}

/// Returns true if a file of that size has a preview; the start of a larger one need not be read.
#[must_use]
pub const fn is_previewed(file_size: u64) -> bool {
    file_size <= MAX_PREVIEWED_BYTES
}

/// Makes the preview of a file from its first [`PREVIEW_BYTES`] (the whole file if it is shorter).
///
/// Decodes by the byte order mark; else as UTF-8; else as UTF-16 if every other byte is mostly NUL.
/// Otherwise a file with NULs or many control characters is binary, and any other has the legacy
/// encoding that its bytes make likely. The text ends at a whole character.
#[must_use]
pub fn preview(head: &[u8], file_size: u64) -> Preview {
    if !is_previewed(file_size) {
        return Preview::Skipped(Skipped::TooLarge);
    }
    let displayed = usize::try_from(PREVIEW_BYTES).unwrap_or(usize::MAX);
    let head = head.get(..displayed).unwrap_or(head);
    // Whether the last character may be cut decides how strictly the end is decoded.
    let truncated = u64::try_from(head.len()).is_ok_and(|displayed| displayed < file_size);
    match decode(head, truncated) {
        Some(text) => Preview::Text { text, truncated },
        None => Preview::Skipped(Skipped::NotText),
    }
}

fn decode(head: &[u8], truncated: bool) -> Option<String> {
    let (encoding, mark) = text_encoding(head, truncated)?;
    let text = decode_cut(encoding, head.get(mark..)?, truncated);
    looks_like_text(&text).then_some(text)
}

/// Returns the encoding of a text that starts with these bytes, and the length of its byte order mark;
/// `None` for binary data. A truncated text may end within a character.
#[must_use]
pub fn text_encoding(head: &[u8], truncated: bool) -> Option<(&'static Encoding, usize)> {
    if let Some(marked) = Encoding::for_bom(head) {
        return Some(marked);
    }
    // Before any guess: a text in another encoding is hardly ever valid UTF-8.
    if utf8(head, truncated).is_some() {
        return Some((UTF_8, 0));
    }
    // UTF-16 without a mark is full of NULs, which would count as binary below.
    if let Some(encoding) = utf16_by_nul_pattern(head) {
        return Some((encoding, 0));
    }
    if head.contains(&0) || !has_few_controls(head.iter().copied().map(u32::from), head.len()) {
        return None;
    }
    Some((legacy_encoding(head, truncated), 0))
}

/// Unit signs in instrument files: no-break space, °, ±, ², µ, ·, ×.
const UNIT_SIGNS: [u8; 7] = [0xa0, 0xb0, 0xb1, 0xb2, 0xb5, 0xb7, 0xd7];

/// Returns the likely legacy encoding. The detector mistakes a lone `µ` in a table of numbers for a
/// letter of a language, so a text whose only other characters are unit signs is Windows-1252.
fn legacy_encoding(head: &[u8], truncated: bool) -> &'static Encoding {
    if head
        .iter()
        .all(|byte| byte.is_ascii() || UNIT_SIGNS.contains(byte))
    {
        return WINDOWS_1252;
    }
    // An escape sequence of a terminal would be taken for ISO-2022-JP.
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(head, !truncated);
    detector.guess(None, Utf8Detection::Deny)
}

/// Decodes strict UTF-8; of a truncated file, up to three bytes of a cut character are dropped.
fn utf8(head: &[u8], truncated: bool) -> Option<&str> {
    match std::str::from_utf8(head) {
        Ok(text) => text_without_nul(text),
        // `error_len` is none where the text ends inside a character, as it may where it was cut.
        Err(error) if truncated && error.error_len().is_none() => {
            std::str::from_utf8(head.get(..error.valid_up_to())?)
                .ok()
                .and_then(text_without_nul)
        }
        Err(_) => None,
    }
}

/// Rejects text with NULs, because UTF-16 text of mostly ASCII is valid UTF-8 with NULs.
fn text_without_nul(text: &str) -> Option<&str> {
    (!text.contains('\0')).then_some(text)
}

/// Decodes bytes; of a truncated file, a character cut by the end is dropped.
fn decode_cut(encoding: &'static Encoding, bytes: &[u8], truncated: bool) -> String {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    // `decode_to_string` stops where the buffer is full.
    let capacity = decoder
        .max_utf8_buffer_length(bytes.len())
        .unwrap_or(bytes.len());
    let mut text = String::with_capacity(capacity);
    // `last` is false for a cut text: a half character at its end is left out instead of replaced.
    let _ = decoder.decode_to_string(bytes, &mut text, !truncated);
    text.shrink_to_fit();
    text
}

/// Detects UTF-16 without a mark: in Latin text one byte of most pairs is NUL, always the same one.
fn utf16_by_nul_pattern(head: &[u8]) -> Option<&'static Encoding> {
    let pairs = head.len() / 2;
    if pairs < 2 {
        return None;
    }
    let mut nul = [0_usize; 2];
    for pair in head.chunks_exact(2) {
        for (count, byte) in nul.iter_mut().zip(pair) {
            *count += usize::from(*byte == 0);
        }
    }
    let [even, odd] = nul;
    // 40 % and 1 %: texts have non-Latin characters, too, whose high byte is no NUL.
    let mostly = |count: usize| count * 10 >= pairs * 4;
    let hardly = |count: usize| count * 100 <= pairs;
    if mostly(odd) && hardly(even) {
        Some(UTF_16LE)
    } else if mostly(even) && hardly(odd) {
        Some(UTF_16BE)
    } else {
        None
    }
}

/// Returns true for text without NULs, with few control characters and few undecodable ones.
fn looks_like_text(text: &str) -> bool {
    let chars = text.chars().count();
    let undecodable = text
        .chars()
        .filter(|c| *c == char::REPLACEMENT_CHARACTER)
        .count();
    !text.contains('\0')
        // One in twenty: a stray byte does not make a text binary.
        && undecodable * 20 <= chars
        && has_few_controls(text.chars().map(u32::from), chars)
}

/// Returns true if at most 1 in 50 is a control character that text files do not have.
fn has_few_controls(units: impl Iterator<Item = u32>, count: usize) -> bool {
    let odd = units
        .filter(|unit| matches!(unit, 0..=7 | 14..=26 | 28..=31 | 127))
        .count();
    // One in fifty; tab, line breaks, form feed and escape are not counted.
    odd * 50 <= count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size(bytes: &[u8]) -> u64 {
        u64::try_from(bytes.len()).unwrap()
    }

    fn text_of(bytes: &[u8]) -> Option<String> {
        match preview(bytes, size(bytes)) {
            Preview::Text {
                text,
                truncated: false,
            } => Some(text),
            Preview::Text { .. } => panic!("truncated"),
            Preview::Skipped(_) => None,
        }
    }

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn every_encoding_of_instruments_is_read() {
        let text = "Well,OD600 (µ)\r\nA1,0.103\r\n";
        let mut utf8_with_mark = b"\xef\xbb\xbf".to_vec();
        utf8_with_mark.extend_from_slice(text.as_bytes());
        let mut utf16_with_mark = vec![0xff, 0xfe];
        utf16_with_mark.extend(utf16(text, u16::to_le_bytes));
        let latin1 = text
            .replace('µ', "\u{1}")
            .into_bytes()
            .into_iter()
            .map(|b| if b == 1 { 0xb5 } else { b });
        let cases = [
            text.as_bytes().to_vec(),
            utf8_with_mark,
            utf16_with_mark,
            utf16(text, u16::to_le_bytes),
            utf16(text, u16::to_be_bytes),
            latin1.collect(),
        ];
        for bytes in cases {
            assert_eq!(text_of(&bytes).as_deref(), Some(text));
        }
    }

    #[test]
    fn japanese_in_a_legacy_encoding_is_detected() {
        let text = "試料,吸光度\n一番,0.5\n二番,0.7\n測定日時,温度,吸光度の平均値\n";
        let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode(text);
        assert_eq!(text_of(&bytes).as_deref(), Some(text));
    }

    #[test]
    fn an_empty_file_previews_as_nothing() {
        assert_eq!(text_of(b"").as_deref(), Some(""));
    }

    #[test]
    fn binary_files_are_not_text() {
        let cases: [&[u8]; 4] = [
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01",
            b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0",
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd",
            b"text, then a\0NUL",
        ];
        for bytes in cases {
            assert_eq!(
                preview(bytes, size(bytes)),
                Preview::Skipped(Skipped::NotText)
            );
        }
    }

    #[test]
    fn a_large_file_is_skipped_without_a_look() {
        assert!(is_previewed(MAX_PREVIEWED_BYTES));
        assert_eq!(
            preview(b"a", MAX_PREVIEWED_BYTES + 1),
            Preview::Skipped(Skipped::TooLarge)
        );
    }

    #[test]
    fn a_cut_character_is_left_out() {
        for (mark, character) in [("", "é"), ("", "€"), ("", "😀"), ("x", "é"), ("xx", "😀")]
        {
            let whole = format!("{mark}{}", character.repeat(40_000));
            let head = &whole.as_bytes()[..65_536];
            let Preview::Text { text, truncated } = preview(head, size(whole.as_bytes())) else {
                panic!("not text: {character}");
            };
            assert!(truncated);
            assert!(whole.starts_with(&text));
            assert!(text.len() > 65_536 - 4);
        }
    }

    #[test]
    fn a_pair_of_surrogates_is_not_cut() {
        let mut whole = vec![0xff, 0xfe];
        whole.extend(utf16(
            &format!("a{}", "😀".repeat(20_000)),
            u16::to_le_bytes,
        ));
        let Preview::Text { text, .. } = preview(&whole[..65_536], size(&whole)) else {
            panic!("not text");
        };
        assert!(!text.contains(char::REPLACEMENT_CHARACTER));
        assert!(text.ends_with("😀"));
    }

    #[test]
    fn reasons_have_the_texts_of_the_api() {
        assert_eq!(Skipped::TooLarge.as_str(), "file too large");
        assert_eq!(Skipped::NotText.as_str(), "not text");
    }

    #[test]
    fn text_with_many_control_characters_is_binary() {
        let with_controls = |count: usize| [vec![b'a'; 50 - count], vec![1; count]].concat();
        assert!(text_of(&with_controls(1)).is_some());
        assert_eq!(text_of(&with_controls(2)), None);
        assert_eq!(text_of(&[1; 40]), None);
    }

    #[test]
    fn text_that_mostly_cannot_be_decoded_is_binary() {
        let marked = |garbage: usize| {
            let mut bytes = b"\xef\xbb\xbf".to_vec();
            bytes.extend(vec![b'a'; 20 - garbage]);
            bytes.extend(vec![0xff; garbage]);
            bytes
        };
        let text = text_of(&marked(1)).unwrap();
        assert!(text.ends_with(char::REPLACEMENT_CHARACTER), "{text}");
        assert_eq!(text_of(&marked(2)), None);
    }

    #[test]
    fn a_legacy_character_at_the_end_is_not_taken_for_a_cut_one() {
        assert_eq!(text_of(b"25 \xb0").as_deref(), Some("25 °"));
        assert_eq!(
            text_of(b"Gr\xf6\xdfe: 3 \xb5").as_deref(),
            Some("Größe: 3 µ")
        );
        let Preview::Text { text, .. } = preview(b"25 \xb0C", 100) else {
            panic!("not text");
        };
        assert_eq!(text, "25 °C");
    }

    #[test]
    fn a_cut_legacy_character_does_not_change_the_encoding() {
        let whole = "試料,吸光度\n一番,0.5\n二番,0.7\n測定日時,温度,吸光度の平均値";
        let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode(whole);
        let Preview::Text { text, truncated } = preview(&bytes[..bytes.len() - 1], size(&bytes))
        else {
            panic!("not text");
        };
        assert!(truncated);
        assert_eq!(text, whole.trim_end_matches('値'));
    }

    #[test]
    fn half_a_character_at_the_end_of_a_whole_file_is_shown_as_undecodable() {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend(utf16(&"a".repeat(30), u16::to_le_bytes));
        bytes.push(b'b');
        let text = text_of(&bytes).unwrap();
        assert_eq!(text, format!("{}\u{fffd}", "a".repeat(30)));
        let Preview::Text { text, .. } = preview(&bytes, size(&bytes) + 1) else {
            panic!("not text");
        };
        assert_eq!(text, "a".repeat(30));
    }

    #[test]
    fn utf_16_without_a_mark_is_recognized_from_two_characters_on() {
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            assert_eq!(text_of(&utf16("ab", to_bytes)).as_deref(), Some("ab"));
            assert_eq!(text_of(&utf16("a", to_bytes)), None);
        }
    }

    #[test]
    fn bytes_with_few_nuls_or_with_nuls_at_both_places_are_not_utf_16() {
        let mostly_greek = utf16("αβγδεζηθ, ", u16::to_le_bytes);
        assert_eq!(text_of(&mostly_greek), None);
        let mixed = utf16(&"aĀ".repeat(10), u16::to_le_bytes);
        assert_eq!(text_of(&mixed), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_previewed_or_skipped_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            behind in 0_u64..3,
        ) {
            if let Preview::Text { text, truncated } = preview(&bytes, size(&bytes) + behind) {
                prop_assert_eq!(truncated, behind > 0);
                prop_assert!(!text.contains('\0'));
            }
        }

        #[test]
        fn printable_utf8_is_shown_as_it_is(text in "[^\\p{C}\u{feff}\u{fffd}]{0,200}") {
            prop_assert_eq!(text_of(text.as_bytes()), Some(text));
        }
    }
}
