//! Readers keep what the port promises, and what they are confined to.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, their helpers included: what is not as expected fails them"
)]

mod damage;

use std::{
    io::{Cursor, Read as _, Write as _},
    sync::Arc,
};

use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::reading::{ReaderEnd, TableReader};
use labdata_table_formats::read::{
    Connection, ReadError, ReadOptions, Source, TableSummary, preview_remote,
};
use labdata_table_reader::ChildTableReader;
use parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType},
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
    schema::parser::parse_message_type,
};

struct Children;

#[async_trait]
impl Harness for Children {
    async fn fresh() -> Self {
        Self
    }
}

impl Subject<dyn TableReader> for Children {
    fn subject(&self) -> Arc<dyn TableReader> {
        Arc::new(reader())
    }
}

labdata_port_contracts::table_reader!(Children);

fn reader() -> ChildTableReader {
    ChildTableReader::new(
        env!("CARGO_BIN_EXE_labdata-table-reader").into(),
        Vec::new(),
    )
}

/// Previews a file; returns how the reader ended besides, if it did not respond.
fn preview(bytes: Vec<u8>) -> Result<TableSummary, (ReadError, Option<ReaderEnd>)> {
    let started = reader().start().unwrap();
    let process = Arc::clone(&started.process);
    let connection = Connection {
        input: started.input,
        output: started.output,
        explain: Box::new(|| ReadError::Damaged),
    };
    let source: Box<dyn Source> = Box::new(Cursor::new(bytes));
    let options = ReadOptions::default();
    preview_remote(connection, source, &options, 1_000_000, 50).map_err(|error| {
        let end = matches!(error, ReadError::Damaged).then(|| process.end());
        (error, end)
    })
}

/// A Parquet file of some kilobytes that stands for `rows` texts of `length` bytes.
fn repeated_texts(rows: usize, length: usize) -> Vec<u8> {
    let schema = parse_message_type("message rows { required binary name (UTF8); }").unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_page_size_limit(256 << 20)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let text = ByteArray::from(vec![b'x'; length]);
    let typed = column.typed::<ByteArrayType>();
    typed.write_batch(&vec![text; rows], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn a_file_of_some_kilobytes_with_gigabytes_of_text_is_refused() {
    let bytes = repeated_texts(1_200, 1 << 20);
    assert!(bytes.len() < 1 << 20, "{}", bytes.len());
    let (error, end) = preview(bytes).unwrap_err();
    assert!(matches!(error, ReadError::TooLarge), "{error:?} {end:?}");
}

/// The reader's own program, which is told to do something else.
fn misbehave(what: &str) -> (ReaderEnd, String) {
    let started = ChildTableReader::new(
        env!("CARGO_BIN_EXE_labdata-table-reader").into(),
        vec![what.into()],
    );
    let mut started = started.start().unwrap();
    // It begins at the end of its input.
    started.input.flush().unwrap();
    drop(started.input);
    let mut said = String::new();
    started.output.read_to_string(&mut said).unwrap();
    (started.process.end(), said)
}

#[test]
fn memory_and_time_are_bounded() {
    assert_eq!(misbehave("allocate").0, ReaderEnd::OutOfMemory);
    assert_eq!(misbehave("spin").0, ReaderEnd::OutOfTime);
    assert_eq!(misbehave("exit").0, ReaderEnd::Crashed);
}

#[test]
#[cfg(target_os = "linux")]
fn a_reader_reaches_nothing_but_its_pipes() {
    let (end, said) = misbehave("reach");
    assert_eq!(end, ReaderEnd::Done);
    assert_eq!(
        said,
        "read: refused\nwrite: refused\nconnect: refused\nrun: refused\nenvironment: 0\n"
    );
}
