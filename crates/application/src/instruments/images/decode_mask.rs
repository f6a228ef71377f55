//! Decodes masks row by row, in the memory of a few rows.

use std::{
    io::{BufRead, Cursor, Seek},
    num::NonZero,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::{channel::oneshot, future::join_all};
use labdata_domain::instruments::images::{
    Bitmap, InvalidMask, MaskScan, MaskShape, PixelLayout, PixelSize,
};
use png::{BitDepth, ColorType, Decoder, DecodingError, Limits, Reader, Transformations};

use crate::Error;

/// Maximum memory of a decoder in bytes: a few rows of the widest image.
const DECODER_BYTES: usize = 4 << 20;

/// Maximum number of threads that decode the masks of a request.
const THREADS: usize = 4;

/// A mask that was decoded.
#[derive(Clone, Debug)]
pub(crate) struct DecodedMask {
    /// The PNG.
    pub(crate) png: Bytes,
    /// The part of the image that it covers.
    pub(crate) shape: MaskShape,
}

/// Decodes masks in base64 for an image of that size, in threads. Returns the index and the reason of the first
/// one that is not accepted.
pub(crate) async fn decode_masks(
    masks: Vec<String>,
    size: PixelSize,
) -> Result<Result<Vec<DecodedMask>, (usize, InvalidMask)>, Error> {
    let count = masks.len();
    let work = Arc::new(Work {
        masks: masks.into_iter().map(Mutex::new).collect(),
        next: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        size,
    });
    // A caller that leaves ends the threads at their next mask.
    let _ending = Ending(Arc::clone(&work));
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut outcomes = Vec::new();
    for _ in 0..threads.min(THREADS).min(count) {
        let (done, outcome) = oneshot::channel();
        let work = Arc::clone(&work);
        let thread = thread::Builder::new().name("masks".to_owned());
        let spawned = thread.spawn(move || {
            let _ = done.send(work.run());
        });
        spawned.map_err(|error| Error::Internal(format!("no thread for masks: {error}")))?;
        outcomes.push(outcome);
    }
    let mut all = Vec::with_capacity(count);
    for outcome in join_all(outcomes).await {
        let ended = |_| Error::Internal("the thread of masks ended early".to_owned());
        all.extend(outcome.map_err(ended)?);
    }
    all.sort_by_key(|(index, _)| *index);
    let decoded = all
        .into_iter()
        .map(|(index, decoded)| decoded.map_err(|reason| (index, reason)));
    Ok(decoded.collect())
}

/// Masks that threads take one after the other.
struct Work {
    masks: Vec<Mutex<String>>,
    next: AtomicUsize,
    is_over: AtomicBool,
    size: PixelSize,
}

/// Ends the work when it is dropped.
struct Ending(Arc<Work>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Work {
    fn run(&self) -> Vec<(usize, Result<DecodedMask, InvalidMask>)> {
        let mut decoded = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(mask) = self.masks.get(index) else {
                break;
            };
            // Taken out, so that the text is freed once it is decoded.
            let text = std::mem::take(&mut *mask.lock().unwrap_or_else(PoisonError::into_inner));
            let outcome = decode(text, self.size);
            // The first one is reported. Masks before it are with other threads, which still decode those.
            if outcome.is_err() {
                self.is_over.store(true, Ordering::Relaxed);
            }
            decoded.push((index, outcome));
        }
        decoded
    }
}

fn decode(text: String, size: PixelSize) -> Result<DecodedMask, InvalidMask> {
    // As some libraries of images write it.
    let encoded = text
        .strip_prefix("data:image/png;base64,")
        .unwrap_or(&text)
        .trim();
    let png = STANDARD
        .decode(encoded)
        .map_err(|_| InvalidMask::NotBase64)?;
    drop(text);
    let shape = shape_of(&png, size)?;
    Ok(DecodedMask {
        png: png.into(),
        shape,
    })
}

/// Returns the shape of a mask that is a PNG.
fn shape_of(png: &[u8], size: PixelSize) -> Result<MaskShape, InvalidMask> {
    let (mut reader, layout) = open(Cursor::new(png), size)?;
    let mut scan = MaskScan::new(size, layout);
    while let Some(row) = reader.next_row().map_err(|error| not_png(&error))? {
        scan.add_row(row.data());
    }
    // Also what follows the pixels: a file that was cut off must not be stored.
    reader.finish().map_err(|error| not_png(&error))?;
    scan.finish()
}

/// Adds the foreground of a mask that was accepted before.
pub(crate) fn unite(
    png: impl BufRead + Seek,
    size: PixelSize,
    bitmap: &mut Bitmap,
) -> Result<(), InvalidMask> {
    let (mut reader, layout) = open(png, size)?;
    bitmap.begin();
    while let Some(row) = reader.next_row().map_err(|error| not_png(&error))? {
        bitmap.add_row(row.data(), layout);
    }
    Ok(())
}

/// Encodes a bitmap as a gray PNG of one bit, in which foreground is white.
///
/// # Errors
/// The text of the encoder.
pub(crate) fn encode_bitmap(bitmap: &Bitmap, size: PixelSize) -> Result<Vec<u8>, String> {
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, size.width, size.height);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::One);
    let text = |error: png::EncodingError| error.to_string();
    let mut writer = encoder.write_header().map_err(text)?;
    let mut stream = writer.stream_writer().map_err(text)?;
    for row in bitmap.rows() {
        std::io::Write::write_all(&mut stream, row).map_err(|error| error.to_string())?;
    }
    stream.finish().map_err(text)?;
    writer.finish().map_err(text)?;
    Ok(png)
}

/// Reads the header of a mask, and checks it before a pixel is decoded.
fn open<R: BufRead + Seek>(
    png: R,
    image: PixelSize,
) -> Result<(Reader<R>, PixelLayout), InvalidMask> {
    let limits = Limits {
        bytes: DECODER_BYTES,
    };
    let mut decoder = Decoder::new_with_limits(png, limits);
    // Their texts may unpack to any length.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let header = decoder
        .read_header_info()
        .map_err(|error| not_png(&error))?;
    let mask = PixelSize {
        width: header.width,
        height: header.height,
    };
    if header.interlaced {
        return Err(InvalidMask::Interlaced);
    }
    if mask != image {
        return Err(InvalidMask::OtherSize { mask, image });
    }
    let reader = decoder.read_info().map_err(|error| not_png(&error))?;
    let layout = match reader.output_color_type().0 {
        ColorType::GrayscaleAlpha => PixelLayout::GrayAlpha,
        ColorType::Rgba => PixelLayout::Rgba,
        _ => return Err(InvalidMask::Opaque),
    };
    Ok((reader, layout))
}

fn not_png(error: &DecodingError) -> InvalidMask {
    InvalidMask::NotPng(error.to_string())
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    const SIZE: PixelSize = PixelSize {
        width: 10,
        height: 3,
    };

    /// A PNG whose second row has three white pixels.
    fn png(color: ColorType, depth: BitDepth, rows: &[u8]) -> Vec<u8> {
        let mut png = Vec::new();
        let mut encoder = png::Encoder::new(&mut png, SIZE.width, SIZE.height);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette(vec![255; 6]);
            encoder.set_trns(vec![0, 255]);
        }
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(rows).unwrap();
        writer.finish().unwrap();
        png
    }

    fn indexed() -> Vec<u8> {
        let rows = [0, 0, 0b0111_0000, 0, 0, 0];
        png(ColorType::Indexed, BitDepth::One, &rows)
    }

    #[test]
    fn masks_of_every_kind_with_transparency_are_decoded() {
        let mut gray = vec![0; 60];
        let mut color = vec![0; 120];
        for pixel in 11..14 {
            gray[pixel * 2..][..2].fill(255);
            color[pixel * 4..][..4].fill(255);
        }
        for png in [
            indexed(),
            png(ColorType::GrayscaleAlpha, BitDepth::Eight, &gray),
            png(ColorType::Rgba, BitDepth::Eight, &color),
        ] {
            let shape = shape_of(&png, SIZE).unwrap();
            assert_eq!(shape.foreground, 3);
            let bounds = shape.bounds;
            assert_eq!(
                (bounds.x, bounds.y, bounds.width, bounds.height),
                (1, 1, 3, 1)
            );
        }
    }

    #[test]
    fn masks_without_transparency_or_of_another_size_are_refused() {
        let gray = png(ColorType::Grayscale, BitDepth::Eight, &[255; 30]);
        assert_eq!(shape_of(&gray, SIZE), Err(InvalidMask::Opaque));
        let image = PixelSize {
            width: 11,
            height: 3,
        };
        let mask = SIZE;
        assert_eq!(
            shape_of(&indexed(), image),
            Err(InvalidMask::OtherSize { mask, image })
        );
    }

    #[test]
    fn damaged_masks_are_refused() {
        let whole = indexed();
        for end in 0..whole.len() {
            assert!(shape_of(&whole[..end], SIZE).is_err(), "{end}");
        }
    }

    #[test]
    fn the_first_mask_that_is_not_accepted_is_reported() {
        let good = STANDARD.encode(indexed());
        let url = format!("data:image/png;base64,{good}");
        let decoded = block_on(decode_masks(vec![good.clone(), url], SIZE)).unwrap();
        assert_eq!(decoded.unwrap().len(), 2);
        let masks = vec![good, "?".to_owned(), "!".to_owned()];
        let (index, reason) = block_on(decode_masks(masks, SIZE)).unwrap().unwrap_err();
        assert_eq!((index, reason), (1, InvalidMask::NotBase64));
    }

    #[test]
    fn a_united_mask_is_a_gray_image_of_one_bit() {
        let mut bitmap = Bitmap::new(SIZE);
        unite(Cursor::new(indexed()), SIZE, &mut bitmap).unwrap();
        let encoded = encode_bitmap(&bitmap, SIZE).unwrap();
        let mut reader = Decoder::new(Cursor::new(encoded)).read_info().unwrap();
        let header = reader.info();
        assert_eq!(
            (header.color_type, header.bit_depth),
            (ColorType::Grayscale, BitDepth::One)
        );
        let mut pixels = vec![0; 6];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, [0, 0, 0b0111_0000, 0, 0, 0]);
    }
}
