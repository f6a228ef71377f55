//! Masks: which pixels of an image belong to a label.

use super::header::PixelSize;

/// Why a mask is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMask {
    /// It is no base64.
    #[error("the mask is not base64")]
    NotBase64,
    /// It is no PNG, or is damaged.
    #[error("the mask is no readable PNG image: {0}")]
    NotPng(String),
    /// Its rows come in several passes.
    #[error("the mask is an interlaced PNG; save it without interlacing")]
    Interlaced,
    /// It has no transparency.
    #[error(
        "the mask has no transparency: a mask is white where the label is, and transparent elsewhere"
    )]
    Opaque,
    /// It has opaque pixels that are not white.
    #[error(
        "{0} opaque pixels of the mask are not white: a mask is white where the label is, and transparent \
         elsewhere"
    )]
    NotWhite(u64),
    /// Its size is another than that of the image.
    #[error("the mask has {mask} pixels, and the image {image}")]
    OtherSize {
        /// Size of the mask.
        mask: PixelSize,
        /// Size of the image.
        image: PixelSize,
    },
    /// Every pixel is transparent.
    #[error(
        "the mask is empty: no pixel is opaque (an alpha of less than 128 counts as transparent)"
    )]
    Empty,
}

/// Value from which a channel counts as opaque, or white. Edges that a program has smoothed lie between.
const HALF: u8 = 128;

/// Smallest rectangle that holds all foreground pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundingBox {
    /// Pixels to the left of it.
    pub x: u32,
    /// Pixels above it.
    pub y: u32,
    /// Its width.
    pub width: u32,
    /// Its height.
    pub height: u32,
}

/// The part of an image that a mask covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskShape {
    /// Size of the image, and of the mask.
    pub size: PixelSize,
    /// Number of foreground pixels.
    pub foreground: u64,
    /// Rectangle around them.
    pub bounds: BoundingBox,
}

impl MaskShape {
    /// Share of the image that is foreground, above 0 and at most 1.
    #[must_use]
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "images have far fewer pixels than a float has exact integers"
    )]
    pub fn foreground_fraction(&self) -> f64 {
        self.foreground as f64 / self.size.pixels() as f64
    }
}

/// Bytes of a pixel in decoded rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelLayout {
    /// Gray, alpha.
    GrayAlpha,
    /// Red, green, blue, alpha.
    Rgba,
}

/// Foreground of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RowCount {
    foreground: u64,
    /// Opaque pixels that are not white.
    other: u64,
    /// First foreground pixel, and the one behind the last.
    ends: Option<(u32, u32)>,
}

/// Reads the rows of a mask from top to bottom, in the memory of two rows.
#[derive(Clone, Debug)]
pub struct MaskScan {
    size: PixelSize,
    layout: PixelLayout,
    row: u32,
    /// The row before: most rows of a mask equal their neighbor, and comparing is faster than counting.
    previous: Vec<u8>,
    count: RowCount,
    foreground: u64,
    other: u64,
    /// First row with foreground, and the one behind the last.
    rows: Option<(u32, u32)>,
    columns: Option<(u32, u32)>,
}

impl MaskScan {
    /// Begins a mask.
    #[must_use]
    pub const fn new(size: PixelSize, layout: PixelLayout) -> Self {
        Self {
            size,
            layout,
            row: 0,
            previous: Vec::new(),
            count: RowCount {
                foreground: 0,
                other: 0,
                ends: None,
            },
            foreground: 0,
            other: 0,
            rows: None,
            columns: None,
        }
    }

    /// Adds the next row: the bytes of its pixels.
    pub fn add_row(&mut self, bytes: &[u8]) {
        // Most rows of a mask equal the one above; comparing bytes is far cheaper than counting pixels.
        if self.previous != bytes {
            self.count = match self.layout {
                PixelLayout::GrayAlpha => count::<2>(bytes),
                PixelLayout::Rgba => count::<4>(bytes),
            };
            bytes.clone_into(&mut self.previous);
        }
        self.foreground += self.count.foreground;
        self.other += self.count.other;
        if let Some((left, right)) = self.count.ends {
            let (first, last) = self.columns.unwrap_or((left, right));
            self.columns = Some((first.min(left), last.max(right)));
            let (top, _) = self.rows.unwrap_or((self.row, 0));
            self.rows = Some((top, self.row + 1));
        }
        self.row += 1;
    }

    /// The shape of the mask.
    ///
    /// # Errors
    /// [`InvalidMask::NotWhite`], [`InvalidMask::Empty`].
    pub const fn finish(&self) -> Result<MaskShape, InvalidMask> {
        // Before emptiness: a mask in another color has no white pixel either, and this names the cause.
        if self.other > 0 {
            return Err(InvalidMask::NotWhite(self.other));
        }
        match (self.columns, self.rows) {
            (Some((left, right)), Some((top, bottom))) => Ok(MaskShape {
                size: self.size,
                foreground: self.foreground,
                bounds: BoundingBox {
                    x: left,
                    y: top,
                    width: right - left,
                    height: bottom - top,
                },
            }),
            _ => Err(InvalidMask::Empty),
        }
    }
}

/// True for an opaque white pixel of that many bytes, `None` for a transparent one.
fn is_white<const BYTES: usize>(pixel: &[u8; BYTES]) -> Option<bool> {
    let (alpha, channels) = pixel.split_last()?;
    (*alpha >= HALF).then(|| channels.iter().all(|channel| *channel >= HALF))
}

fn count<const BYTES: usize>(bytes: &[u8]) -> RowCount {
    let (pixels, _) = bytes.as_chunks::<BYTES>();
    let (mut foreground, mut other) = (0, 0);
    for pixel in pixels {
        let white = is_white(pixel);
        foreground += u64::from(white == Some(true));
        other += u64::from(white == Some(false));
    }
    let is_foreground = |pixel: &[u8; BYTES]| is_white(pixel) == Some(true);
    let position = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let first = pixels.iter().position(is_foreground);
    let last = pixels.iter().rposition(is_foreground);
    RowCount {
        foreground,
        other,
        ends: first
            .zip(last)
            .map(|(first, last)| (position(first), position(last) + 1)),
    }
}

/// Pixels of an image, one bit each, rows from the top.
#[derive(Clone, Debug)]
pub struct Bitmap {
    stride: usize,
    bits: Vec<u8>,
    row: usize,
}

impl Bitmap {
    /// A bitmap without foreground.
    #[must_use]
    pub fn new(size: PixelSize) -> Self {
        let length = |side: u32| usize::try_from(side).unwrap_or(usize::MAX);
        // Rows begin at whole bytes, as in a PNG of one bit per pixel, so that rows are written as they are.
        let stride = length(size.width).div_ceil(8);
        Self {
            stride,
            bits: vec![0; stride.saturating_mul(length(size.height))],
            row: 0,
        }
    }

    /// Begins another mask at the top.
    pub const fn begin(&mut self) {
        self.row = 0;
    }

    /// Adds the foreground of the next row to what is there.
    pub fn add_row(&mut self, bytes: &[u8], layout: PixelLayout) {
        let start = self.row * self.stride;
        self.row += 1;
        let row = self.bits.get_mut(start..).unwrap_or_default();
        match layout {
            PixelLayout::GrayAlpha => set::<2>(row, bytes),
            PixelLayout::Rgba => set::<4>(row, bytes),
        }
    }

    /// The rows, each padded to a whole byte; the first pixel is the highest bit.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.bits.chunks(self.stride.max(1))
    }
}

fn set<const BYTES: usize>(row: &mut [u8], bytes: &[u8]) {
    let (pixels, _) = bytes.as_chunks::<BYTES>();
    // `|=`, because the masks of an image are united into one.
    for (byte, pixels) in row.iter_mut().zip(pixels.chunks(8)) {
        let bits = pixels.iter().zip([128, 64, 32, 16, 8, 4, 2, 1_u8]);
        *byte |= bits
            .filter(|(pixel, _)| is_white(pixel) == Some(true))
            .fold(0, |sum, (_, bit)| sum | bit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: PixelSize = PixelSize {
        width: 10,
        height: 4,
    };

    /// Rows of which `#` is white, `.` transparent, `x` opaque black.
    fn rows(drawn: [&str; 4]) -> Vec<Vec<u8>> {
        let pixel = |character| match character {
            '#' => [255, 255, 255, 255],
            'x' => [0, 0, 0, 255],
            _ => [255, 255, 255, 0],
        };
        let row = |text: &str| text.chars().flat_map(pixel).collect();
        drawn.into_iter().map(row).collect()
    }

    fn scan(drawn: [&str; 4]) -> Result<MaskShape, InvalidMask> {
        let mut scan = MaskScan::new(SIZE, PixelLayout::Rgba);
        for row in rows(drawn) {
            scan.add_row(&row);
        }
        scan.finish()
    }

    #[test]
    fn foreground_is_counted_within_its_bounds() {
        let shape = scan(["..........", "..##......", "...#..#...", ".........."]).unwrap();
        assert_eq!(shape.foreground, 4);
        let bounds = BoundingBox {
            x: 2,
            y: 1,
            width: 5,
            height: 2,
        };
        assert_eq!(shape.bounds, bounds);
        assert!((shape.foreground_fraction() - 0.1).abs() < 1e-12);
    }

    #[test]
    fn rows_that_repeat_count_each() {
        let shape = scan(["#########.", "#########.", "..........", ".........#"]).unwrap();
        assert_eq!(shape.foreground, 19);
        assert_eq!((shape.bounds.width, shape.bounds.height), (10, 4));
    }

    #[test]
    fn a_mask_without_foreground_is_empty() {
        assert_eq!(scan([".........."; 4]), Err(InvalidMask::Empty));
    }

    #[test]
    fn opaque_pixels_are_white() {
        let drawn = ["xxxxxxxxxx", "x########x", "xxxxxxxxxx", "xxxxxxxxxx"];
        assert_eq!(scan(drawn), Err(InvalidMask::NotWhite(32)));
    }

    #[test]
    fn smoothed_edges_count_from_half() {
        let size = PixelSize {
            width: 3,
            height: 1,
        };
        let mut scan = MaskScan::new(size, PixelLayout::GrayAlpha);
        scan.add_row(&[255, 127, 255, 128, 0, 0]);
        let shape = scan.finish().unwrap();
        assert_eq!((shape.foreground, shape.bounds.x), (1, 1));
    }

    #[test]
    fn a_bitmap_unites_masks() {
        let mut bitmap = Bitmap::new(SIZE);
        for drawn in [
            ["#.........", "..........", "..........", ".........#"],
            [".#......#.", "..........", "..........", ".........."],
        ] {
            bitmap.begin();
            for row in rows(drawn) {
                bitmap.add_row(&row, PixelLayout::Rgba);
            }
        }
        let rows: Vec<&[u8]> = bitmap.rows().collect();
        assert_eq!(
            rows,
            [[0b1100_0000, 0b1000_0000], [0, 0], [0, 0], [0, 0b0100_0000]]
        );
    }
}
