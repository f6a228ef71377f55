//! Checks of a Parquet footer before the library reads it.
//!
//! The library reserves memory for the lengths that a footer declares, and descends into a schema by
//! recursion. A footer that passes here has bounded lists, bounded depth, and a flat schema.

use crate::read::{MAX_COLUMNS, ReadError};

/// Maximum number of elements of a list.
const MAX_ELEMENTS: u64 = 100_000;

/// Maximum depth of nested structures. A footer needs eight.
const MAX_DEPTH: u8 = 16;

/// Field of `FileMetaData` that holds the schema.
const SCHEMA: i64 = 2;

/// Fields of `SchemaElement`.
const REPETITION: i64 = 3;
const NAME: i64 = 4;
const NUM_CHILDREN: i64 = 5;

/// Value of [`REPETITION`] of lists.
const REPEATED: i64 = 2;

/// Types of Thrift's compact protocol.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
}

/// Checks a footer: Thrift, without the length and the magic bytes behind it.
///
/// # Errors
/// [`ReadError::Damaged`], [`ReadError::Nested`] or [`ReadError::TooManyColumns`].
pub(super) fn check_footer(footer: &[u8]) -> Result<(), ReadError> {
    let mut thrift = Thrift { rest: footer };
    // Field ids are differences to the one before.
    let (mut last, mut has_schema) = (0, false);
    while let Some((id, of)) = thrift.field(last)? {
        if id == SCHEMA && of == kind::LIST {
            thrift.schema()?;
            has_schema = true;
        } else {
            thrift.skip(of, 0)?;
        }
        last = id;
    }
    has_schema.then_some(()).ok_or(ReadError::Damaged)
}

/// Content of a schema element.
#[derive(Default)]
struct Element {
    name: String,
    repetition: Option<i64>,
    children: Option<i64>,
}

/// Reader of the compact protocol.
struct Thrift<'f> {
    rest: &'f [u8],
}

impl<'f> Thrift<'f> {
    fn take(&mut self, count: u64) -> Result<&'f [u8], ReadError> {
        let count = usize::try_from(count).map_err(|_| ReadError::Damaged)?;
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(ReadError::Damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, ReadError> {
        let taken = self.take(1)?;
        taken.first().copied().ok_or(ReadError::Damaged)
    }

    fn varint(&mut self) -> Result<u64, ReadError> {
        let mut value = 0;
        // Ten bytes hold 64 bits; a longer number is damage.
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ReadError::Damaged)
    }

    fn signed(&mut self) -> Result<i64, ReadError> {
        let value = self.varint()?;
        let magnitude = (value >> 1).cast_signed();
        Ok(if value & 1 == 0 {
            magnitude
        } else {
            // Zigzag: the lowest bit is the sign.
            !magnitude
        })
    }

    /// Reads the head of a struct's next field; `None` at the end of the struct.
    fn field(&mut self, last: i64) -> Result<Option<(i64, u8)>, ReadError> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let id = match head >> 4 {
            0 => self.signed()?,
            delta => last.saturating_add(i64::from(delta)),
        };
        Ok(Some((id, head & 0x0f)))
    }

    /// Reads the head of a list: the number and the type of its elements.
    fn list(&mut self) -> Result<(u64, u8), ReadError> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        // Thrift declares the count in front, and the library reserves memory for it.
        if count > MAX_ELEMENTS {
            return Err(ReadError::Damaged);
        }
        Ok((count, head & 0x0f))
    }

    /// Skips a field of that type.
    fn skip(&mut self, of: u8, depth: u8) -> Result<(), ReadError> {
        // A megabyte of nested heads would overflow the stack.
        if depth > MAX_DEPTH {
            return Err(ReadError::Damaged);
        }
        match of {
            // The type is the value.
            kind::TRUE | kind::FALSE => {}
            kind::BYTE => self.take(1).map(drop)?,
            kind::I16..=kind::I64 => self.varint().map(drop)?,
            kind::DOUBLE => self.take(8).map(drop)?,
            kind::BINARY => {
                let length = self.varint()?;
                self.take(length)?;
            }
            kind::LIST | kind::SET => {
                let (count, of) = self.list()?;
                for _ in 0..count {
                    self.skip_element(of, depth + 1)?;
                }
            }
            kind::MAP => {
                let count = self.varint()?;
                if count > MAX_ELEMENTS {
                    return Err(ReadError::Damaged);
                }
                let of = if count > 0 { self.byte()? } else { 0 };
                for _ in 0..count {
                    self.skip_element(of >> 4, depth + 1)?;
                    self.skip_element(of & 0x0f, depth + 1)?;
                }
            }
            kind::STRUCT => {
                let mut last = 0;
                while let Some((id, of)) = self.field(last)? {
                    self.skip(of, depth + 1)?;
                    last = id;
                }
            }
            _ => return Err(ReadError::Damaged),
        }
        Ok(())
    }

    /// Skips an element of a list or a map, in which a boolean has a byte.
    fn skip_element(&mut self, of: u8, depth: u8) -> Result<(), ReadError> {
        match of {
            kind::TRUE | kind::FALSE => self.take(1).map(drop),
            of => self.skip(of, depth),
        }
    }

    /// Reads the schema: a root, and columns below it that have no children.
    fn schema(&mut self) -> Result<(), ReadError> {
        let (count, of) = self.list()?;
        let columns = usize::try_from(count.saturating_sub(1)).unwrap_or(usize::MAX);
        if of != kind::STRUCT {
            return Err(ReadError::Damaged);
        }
        let mut nested = None;
        for index in 0..count {
            let element = self.element()?;
            let children = element.children.unwrap_or(0);
            if index == 0 {
                let declared = usize::try_from(children).map_err(|_| ReadError::Damaged)?;
                // The root of a nested schema has fewer children than there are elements.
                if declared > columns {
                    return Err(ReadError::Damaged);
                }
            } else if children != 0 || element.repetition == Some(REPEATED) {
                nested.get_or_insert(element.name);
            }
        }
        match nested {
            Some(column) => Err(ReadError::Nested(column)),
            None if columns > MAX_COLUMNS => Err(ReadError::TooManyColumns(columns)),
            None => Ok(()),
        }
    }

    fn element(&mut self) -> Result<Element, ReadError> {
        let (mut element, mut last) = (Element::default(), 0);
        while let Some((id, of)) = self.field(last)? {
            match (id, of) {
                (REPETITION, kind::I16..=kind::I64) => element.repetition = Some(self.signed()?),
                (NUM_CHILDREN, kind::I16..=kind::I64) => element.children = Some(self.signed()?),
                (NAME, kind::BINARY) => {
                    let length = self.varint()?;
                    element.name = String::from_utf8_lossy(self.take(length)?).into_owned();
                }
                _ => self.skip(of, 2)?,
            }
            last = id;
        }
        Ok(element)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A footer of only a schema: elements as (name, children).
    fn footer(elements: &[(&str, u8)]) -> Vec<u8> {
        let mut bytes = vec![0x29, 0xfc, u8::try_from(elements.len()).unwrap()];
        for (name, children) in elements {
            bytes.extend([0x48, u8::try_from(name.len()).unwrap()]);
            bytes.extend(name.as_bytes());
            bytes.extend([0x15, children * 2, 0]);
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_flat_schema_passes() {
        check_footer(&footer(&[("schema", 2), ("a", 0), ("b", 0)])).unwrap();
    }

    #[test]
    fn a_nested_column_is_named() {
        let nested = check_footer(&footer(&[("schema", 1), ("points", 1), ("x", 0)]));
        assert!(matches!(nested, Err(ReadError::Nested(name)) if name == "points"));
    }

    #[test]
    fn lists_that_are_too_long_and_structures_that_are_too_deep_are_damage() {
        let long = [0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert!(matches!(check_footer(&long), Err(ReadError::Damaged)));
        let deep = [0x1c].repeat(100_000);
        assert!(matches!(check_footer(&deep), Err(ReadError::Damaged)));
        let lists = [0x19].repeat(100_000);
        assert!(matches!(check_footer(&lists), Err(ReadError::Damaged)));
        assert!(matches!(check_footer(&[0]), Err(ReadError::Damaged)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_checked(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = check_footer(&bytes);
        }
    }
}
