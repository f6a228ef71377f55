//! [`RowsWriter`]: encoding of a query's result of any length in constant memory.

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use labdata_domain::{data::formula::neutralized, scalar::DataType};

use crate::{
    Encoding, FormatError,
    encode::{BatchWriter, neutralized_array},
    frame::schema,
    rows,
};

/// Encodes rows that are texts of JSON arrays, part by part. The types of columns are those of a
/// [`Frame`](crate::Frame).
pub struct RowsWriter {
    encoding: Encoding,
    names: Vec<String>,
    types: Vec<DataType>,
    schema: SchemaRef,
    writer: BatchWriter,
}

impl RowsWriter {
    /// Begins a table with columns of these names and types.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for Parquet and CSV without columns.
    pub fn new(
        names: Vec<String>,
        types: Vec<DataType>,
        encoding: impl Into<Encoding>,
    ) -> Result<Self, FormatError> {
        let encoding = encoding.into();
        let empty = rows::arrays(&names, &types, std::iter::empty())?;
        let arrow_types = empty.iter().map(|array| array.data_type().clone());
        let headers: Vec<String> = if encoding.changes_texts() {
            let headers = names.iter().map(|name| neutralized(name).into_owned());
            headers.collect()
        } else {
            names.clone()
        };
        let schema = schema(&headers, arrow_types.collect());
        Ok(Self {
            writer: BatchWriter::new(SchemaRef::clone(&schema), encoding.format)?,
            encoding,
            names,
            types,
            schema,
        })
    }

    /// Writes rows; returns the bytes that are complete, which may be none.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for a value that its column's type cannot hold.
    pub fn write(&mut self, rows: Vec<String>) -> Result<Vec<u8>, FormatError> {
        // A batch without columns cannot derive its number of rows.
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let mut arrays: Vec<ArrayRef> = rows::arrays(&self.names, &self.types, rows.into_iter())?;
        if self.encoding.changes_texts() {
            for (array, data_type) in arrays.iter_mut().zip(&self.types) {
                // JSON is stored as text too, but its text begins with no formula and may be a number.
                if matches!(data_type, DataType::String | DataType::Text) {
                    *array = neutralized_array(array);
                }
            }
        }
        let schema = SchemaRef::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options)?;
        self.writer.write(&batch)
    }

    /// Ends the table; returns the last bytes.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(self) -> Result<Vec<u8>, FormatError> {
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    #[test]
    fn formulas_are_neutralized_in_texts_and_names_and_nowhere_else() {
        let written = |format, neutralize_formulas| {
            let names = ["=text", "number", "json"].map(str::to_owned).into();
            let types = vec![DataType::Text, DataType::Integer, DataType::Json];
            let encoding = Encoding {
                format,
                neutralize_formulas,
            };
            let mut writer = RowsWriter::new(names, types, encoding).unwrap();
            let rows = ["[\"=1+1\",-1,-1]", "[null,null,\"=1\"]", "[\"a\",2,{}]"];
            let mut bytes = writer.write(rows.map(str::to_owned).into()).unwrap();
            bytes.extend(writer.finish().unwrap());
            bytes
        };
        let text = String::from_utf8(written(Format::Csv, true)).unwrap();
        let expected = "'=text,number,json\r\n'=1+1,-1,-1\r\n,,\"\"\"=1\"\"\"\r\na,2,{}\r\n";
        assert_eq!(text, expected);
        let plain = String::from_utf8(written(Format::Csv, false)).unwrap();
        assert!(
            plain.starts_with("=text,number,json\r\n=1+1,-1,-1\r\n"),
            "{plain}"
        );
        let arrow = Format::ArrowStream;
        assert_eq!(written(arrow, true), written(arrow, false));
    }
}
