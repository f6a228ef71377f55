//! Sizes of images, read from their headers without decoding a pixel.

use std::fmt;

/// Maximum number of pixels of an image with annotations.
pub const MAX_PIXELS: u64 = 100_000_000;

/// Maximum number of pixels on a side, which bounds the memory of a row.
pub const MAX_SIDE: u32 = 65_535;

/// Bytes of a file that are looked at in one step.
const STEP: u64 = 64 << 10;

/// Maximum number of steps: a JPEG may have long segments before its size.
const MAX_STEPS: u32 = 64;

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelSize {
    /// Pixels of a row.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
}

impl PixelSize {
    /// Number of pixels.
    #[must_use]
    pub const fn pixels(self) -> u64 {
        widen(self.width) * widen(self.height)
    }

    /// True if the image is small enough for masks.
    #[must_use]
    pub const fn is_within_limits(self) -> bool {
        self.width <= MAX_SIDE && self.height <= MAX_SIDE && self.pixels() <= MAX_PIXELS
    }
}

#[expect(
    clippy::as_conversions,
    reason = "`u64::from` is no constant function, and this widens"
)]
const fn widen(side: u32) -> u64 {
    side as u64
}

impl fmt::Display for PixelSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", self.width, self.height)
    }
}

/// Outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Size of the image.
    Found(PixelSize),
    /// It is no image of a known format, or is damaged.
    Unknown,
    /// The size is further on: read the range of [`ImageHeader::range`] for the next step.
    More,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Jpeg,
    Tiff { is_big_endian: bool },
}

/// Finds the size of an image in steps, each of which reads a part of the file. Knows PNG, JPEG, GIF, BMP,
/// WebP and TIFF.
#[derive(Clone, Copy, Debug)]
pub struct ImageHeader {
    offset: u64,
    state: State,
    steps: u32,
}

impl Default for ImageHeader {
    fn default() -> Self {
        Self {
            offset: 0,
            state: State::Start,
            steps: 0,
        }
    }
}

impl ImageHeader {
    /// Range of the file that the next step reads.
    #[must_use]
    pub const fn range(&self) -> std::ops::Range<u64> {
        self.offset..self.offset.saturating_add(STEP)
    }

    /// Reads the bytes of [`Self::range`], of which the file may have fewer.
    pub fn step(&mut self, bytes: &[u8]) -> Probe {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Probe::Unknown;
        }
        let part = Part(bytes);
        let probe = match self.state {
            State::Start => self.start(part),
            State::Jpeg => self.jpeg(part, 0),
            State::Tiff { is_big_endian } => tiff_directory(part, is_big_endian),
        };
        match probe.unwrap_or(Probe::Unknown) {
            Probe::Found(size) if size.width == 0 || size.height == 0 => Probe::Unknown,
            probe => probe,
        }
    }

    fn start(&mut self, part: Part<'_>) -> Option<Probe> {
        let bytes = part.0;
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            // IHDR is the first chunk of every PNG, so its fields have fixed offsets.
            let is_header = part.array::<4>(12)? == *b"IHDR";
            return is_header.then(|| found(part.u32(16, true), part.u32(20, true)))?;
        }
        if bytes.starts_with(b"\xff\xd8") {
            self.state = State::Jpeg;
            return self.jpeg(part, 2);
        }
        if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            return found(part.u16(6, false), part.u16(8, false));
        }
        if bytes.starts_with(b"RIFF") && part.array::<4>(8)? == *b"WEBP" {
            return webp(part);
        }
        if bytes.starts_with(b"BM") {
            return bitmap(part);
        }
        let is_big_endian = bytes.starts_with(b"MM\0*");
        if is_big_endian || bytes.starts_with(b"II*\0") {
            self.state = State::Tiff { is_big_endian };
            // The directory may be anywhere, often behind the pixels: the next step reads it.
            self.offset = part.u32(4, is_big_endian)?.into();
            return Some(Probe::More);
        }
        None
    }

    /// Follows the segments of a JPEG to the one with its size.
    fn jpeg(&mut self, part: Part<'_>, mut at: usize) -> Option<Probe> {
        loop {
            let known = part.array::<9>(at).is_some();
            if !known {
                // A file that ends here has no size; a longer one is read from here.
                let is_end = part.0.len() < usize::try_from(STEP).ok()? || at == 0;
                let more = u64::try_from(at).ok()?;
                self.offset = self.offset.checked_add(more)?;
                return (!is_end).then_some(Probe::More);
            }
            let [mark, marker] = part.array(at)?;
            if mark != 0xff {
                return None;
            }
            match marker {
                // Fill bytes, and markers without a segment.
                0xff => at += 1,
                0x01 | 0xd0..=0xd8 => at += 2,
                // Start of a frame; the other values of this range are tables.
                0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                    return found(part.u16(at + 7, true), part.u16(at + 5, true));
                }
                0xd9 | 0xda => return None,
                _ => at = at.checked_add(usize::try_from(part.u16(at + 2, true)?).ok()? + 2)?,
            }
            if at > part.0.len() {
                // Jumps over the rest of a segment.
                self.offset = self.offset.checked_add(u64::try_from(at).ok()?)?;
                let is_end = part.0.len() < usize::try_from(STEP).ok()?;
                return (!is_end).then_some(Probe::More);
            }
        }
    }
}

fn found(width: Option<u32>, height: Option<u32>) -> Option<Probe> {
    let (width, height) = width.zip(height)?;
    Some(Probe::Found(PixelSize { width, height }))
}

fn webp(part: Part<'_>) -> Option<Probe> {
    match &part.array::<4>(12)? {
        b"VP8 " => {
            // The start code of a key frame (RFC 6386, section 9.1). A side has 14 bits; the two above them scale the
            // display.
            let is_key = part.array::<3>(23)? == [0x9d, 0x01, 0x2a];
            let side = |at| part.u16(at, false).map(|side| side & 0x3fff);
            is_key.then(|| found(side(26), side(28)))?
        }
        b"VP8L" => {
            // Behind the signature 0x2f, each side less one in 14 bits (RFC 9649).
            let bits = part.u32(21, false)?;
            let side = |shift: u32| Some(((bits >> shift) & 0x3fff) + 1);
            (part.array::<1>(20)? == [0x2f]).then(|| found(side(0), side(14)))?
        }
        b"VP8X" => {
            let side = |at| {
                // The canvas, each side less one in 24 bits (RFC 9649).
                let [low, middle, high] = part.array(at)?;
                Some(u32::from_le_bytes([low, middle, high, 0]) + 1)
            };
            found(side(24), side(27))
        }
        _ => None,
    }
}

fn bitmap(part: Part<'_>) -> Option<Probe> {
    if part.u32(14, false)? == 12 {
        return found(part.u16(18, false), part.u16(20, false));
    }
    // A negative height means rows from the top.
    let side = |at| Some(i32::from_le_bytes(part.array(at)?).unsigned_abs());
    found(side(18), side(22))
}

/// Reads the first directory of a TIFF.
fn tiff_directory(part: Part<'_>, is_big_endian: bool) -> Option<Probe> {
    let entries = part.u16(0, is_big_endian)?;
    let value = |tag: u32| {
        (0..entries).find_map(|entry| {
            // An entry has 12 bytes. A value of type SHORT (3) or LONG (4) stands in the entry itself.
            let at = usize::try_from(entry).ok()? * 12 + 2;
            if part.u16(at, is_big_endian)? != tag {
                return None;
            }
            match part.u16(at + 2, is_big_endian)? {
                3 => part.u16(at + 8, is_big_endian),
                4 => part.u32(at + 8, is_big_endian),
                _ => None,
            }
        })
    };
    // The tags ImageWidth and ImageLength of TIFF 6.0.
    found(value(256), value(257))
}

/// Part of a file.
#[derive(Clone, Copy)]
struct Part<'b>(&'b [u8]);

impl Part<'_> {
    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn u16(self, at: usize, is_big_endian: bool) -> Option<u32> {
        let bytes = self.array(at)?;
        let number = if is_big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        };
        Some(number.into())
    }

    fn u32(self, at: usize, is_big_endian: bool) -> Option<u32> {
        let bytes = self.array(at)?;
        Some(if is_big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn probe(file: &[u8]) -> Option<(u32, u32)> {
        let mut header = ImageHeader::default();
        loop {
            let range = header.range();
            let end = |at: u64| usize::try_from(at).unwrap().min(file.len());
            match header.step(&file[end(range.start)..end(range.end)]) {
                Probe::Found(size) => return Some((size.width, size.height)),
                Probe::Unknown => return None,
                Probe::More => {}
            }
        }
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
        [
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(),
            &sides,
            &[8, 6, 0, 0, 0],
        ]
        .concat()
    }

    /// A JPEG with that number of bytes of other segments before its size.
    fn jpeg(before: usize) -> Vec<u8> {
        let mut file = vec![0xff, 0xd8];
        let mut left = before;
        while left > 0 {
            let data = left.min(65_533);
            file.extend([0xff, 0xe1]);
            file.extend(u16::try_from(data + 2).unwrap().to_be_bytes());
            file.extend(vec![0xff; data]);
            left -= data;
        }
        file.extend([0xff, 0xc2, 0, 17, 8, 0x0b, 0xb8, 0x0f, 0xa0, 3]);
        file.extend([0; 20]);
        file
    }

    #[test]
    fn sizes_are_read_from_headers() {
        assert_eq!(probe(&png(5000, 4000)), Some((5000, 4000)));
        assert_eq!(probe(b"GIF89a\x20\x03\x58\x02\xf7\0\0"), Some((800, 600)));
        let mut bitmap = b"BM".to_vec();
        bitmap.extend([0; 12]);
        bitmap.extend(40_u32.to_le_bytes());
        bitmap.extend(7_i32.to_le_bytes());
        bitmap.extend((-9_i32).to_le_bytes());
        assert_eq!(probe(&bitmap), Some((7, 9)));
        let webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x1f\x03\0\x57\x02\0";
        assert_eq!(probe(webp), Some((800, 600)));
    }

    #[test]
    fn a_jpeg_may_have_long_segments_before_its_size() {
        for before in [0, 10, 65_520, 65_533, 200_000, 1_000_000] {
            assert_eq!(probe(&jpeg(before)), Some((4000, 3000)), "{before}");
        }
        assert_eq!(probe(&jpeg(200_000)[..100_000]), None);
    }

    #[test]
    fn the_directory_of_a_tiff_may_be_at_its_end() {
        for big in [false, true] {
            let short = |number: u16| {
                if big {
                    number.to_be_bytes()
                } else {
                    number.to_le_bytes()
                }
            };
            let long = |number: u32| {
                if big {
                    number.to_be_bytes()
                } else {
                    number.to_le_bytes()
                }
            };
            let mut file = if big {
                b"MM\0*".to_vec()
            } else {
                b"II*\0".to_vec()
            };
            file.extend(long(300_000));
            file.resize(300_000, 7);
            file.extend(short(2));
            for (tag, side) in [(256, 640), (257, 480)] {
                file.extend([short(tag), short(4)].concat());
                file.extend([long(1), long(side)].concat());
            }
            assert_eq!(probe(&file), Some((640, 480)));
        }
    }

    #[test]
    fn what_is_no_image_has_no_size() {
        for file in [
            b"".as_slice(),
            b"a,b\n1,2\n",
            b"\x89PNG\r\n\x1a\n",
            b"\xff\xd8",
            b"II*\0",
        ] {
            assert_eq!(probe(file), None, "{file:?}");
        }
        assert_eq!(probe(&png(0, 5)), None);
    }

    #[test]
    fn limits_are_of_pixels_and_of_sides() {
        let size = |width, height| PixelSize { width, height };
        assert!(size(10_000, 10_000).is_within_limits());
        assert!(!size(10_001, 10_000).is_within_limits());
        assert!(!size(65_536, 1).is_within_limits());
    }

    proptest! {
        #[test]
        fn damaged_headers_end(damage in proptest::collection::vec(any::<(usize, u8)>(), 0..8), tiff: bool) {
            let mut file = if tiff { b"II*\0\x08\0\0\0\x02\0".to_vec() } else { jpeg(70_000) };
            for (at, byte) in damage {
                let at = at % file.len();
                file[at] = byte;
            }
            let _ = probe(&file);
        }
    }
}
