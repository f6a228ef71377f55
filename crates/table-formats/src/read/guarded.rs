//! Readers that end with an error where a library panics over a damaged file.

use std::panic::{AssertUnwindSafe, catch_unwind};

use labdata_domain::scalar::{DataType, Values};

use super::{ReadError, TableReader};

/// Does work that may panic. What it was working on must not be used again.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(ReadError::Damaged))
}

/// A reader whose panics are errors, after which it has ended.
struct Guarded<R> {
    reader: Option<R>,
    columns: Vec<(String, DataType)>,
}

/// Opens a reader whose panics are errors.
pub(super) fn open_guarded<R: TableReader + 'static>(
    open: impl FnOnce() -> Result<R, ReadError>,
) -> Result<Box<dyn TableReader>, ReadError> {
    let reader = guarded(open)?;
    Ok(Box::new(Guarded {
        columns: reader.columns().to_vec(),
        reader: Some(reader),
    }))
}

impl<R: TableReader> TableReader for Guarded<R> {
    fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    fn next_part(&mut self) -> Result<Option<Vec<Values>>, ReadError> {
        // A reader that panicked may be in any state, so it is put back after a success only.
        let Some(mut reader) = self.reader.take() else {
            return Err(ReadError::Damaged);
        };
        let part = guarded(|| reader.next_part());
        if part.is_ok() {
            self.reader = Some(reader);
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Panicking;

    impl TableReader for Panicking {
        fn columns(&self) -> &[(String, DataType)] {
            &[]
        }

        fn next_part(&mut self) -> Result<Option<Vec<Values>>, ReadError> {
            panic!("a damaged file");
        }
    }

    #[test]
    fn a_panic_is_damage_and_the_end() {
        let mut reader = open_guarded(|| Ok(Panicking)).unwrap();
        for _ in 0..2 {
            assert!(matches!(reader.next_part(), Err(ReadError::Damaged)));
        }
        let opened = open_guarded(|| -> Result<Panicking, _> { panic!("a damaged file") });
        assert!(matches!(opened.map(drop), Err(ReadError::Damaged)));
    }
}
