//! Delimited text.

mod decoded;
mod delimiter;
mod encoding;
mod fields;
mod improbable;
mod sample;

use std::io::Read as _;

use self::{
    decoded::DecodedText,
    delimiter::find_delimiter,
    encoding::find_encoding,
    fields::{Dialect, Fields},
};
pub(super) use self::{
    delimiter::{DELIMITERS, DelimiterChoice},
    improbable::{Because, Improbable},
};
use super::{
    ReadError, Source, head::Extent, options::ReadOptions, raw::RowSource, target::ImportTarget,
};

/// Number of bytes in which the delimiter is looked for.
const SAMPLE_BYTES: u64 = 256 << 10;

/// A text that can be read.
pub(super) struct OpenText {
    pub(super) rows: Box<dyn RowSource>,
    pub(super) delimiter: DelimiterChoice,
    pub(super) improbable: Option<Improbable>,
}

/// Opens a text: finds its encoding and its delimiter, which become options.
pub(super) fn open_text(
    mut source: Box<dyn Source>,
    options: &mut ReadOptions,
    extent: Extent,
    target: Option<&ImportTarget>,
) -> Result<OpenText, ReadError> {
    let found = find_encoding(&mut *source, options.encoding, extent)?;
    options.encoding = Some(found.file.encoding);
    let mut text = DecodedText::new(source, found.file);
    text.rewind()?;
    let mut sample = Vec::new();
    (&mut text).take(SAMPLE_BYTES).read_to_end(&mut sample)?;
    let is_whole = sample.len() < usize::try_from(SAMPLE_BYTES).unwrap_or(usize::MAX);
    let mut sample = String::from_utf8_lossy(&sample).into_owned();
    if !is_whole {
        // The last line is cut.
        let last = sample.rfind('\n').unwrap_or(sample.len());
        sample.truncate(last);
    }
    let choice = find_delimiter(&sample, options, target);
    // Not noted: sent back with the reading, it would settle a doubt about quotation marks.
    let quote = options.quote.unwrap_or(Some(b'"'));
    options.delimiter = Some(choice.delimiter);
    let dialect = Dialect {
        delimiter: choice.delimiter,
        quote,
        skips_first_line: choice.has_sep_line,
    };
    Ok(OpenText {
        rows: Box::new(Fields::new(text, dialect)?),
        delimiter: choice,
        improbable: found.improbable,
    })
}
