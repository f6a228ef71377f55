//! Contract of [`TableReader`].

use std::{
    io::{Cursor, Read, Seek, SeekFrom},
    sync::Arc,
};

use labdata_ports::reading::{ReaderEnd, ReaderProcess, StartedReader, TableReader};
use labdata_table_formats::read::{
    Connection, ReadError, ReadOptions, RemoteTable, Source, open_remote, preview_remote,
};

use crate::{Itself, Subject};

/// Maximum number of rows.
const ROWS: usize = 100_000;

fn connection(started: StartedReader) -> Connection {
    Connection {
        input: started.input,
        output: started.output,
        explain: Box::new(move || match started.process.end() {
            ReaderEnd::Killed => ReadError::Doubtful("killed".to_owned()),
            end => ReadError::Doubtful(format!("{end:?}")),
        }),
    }
}

fn file(text: &str) -> Box<dyn Source> {
    Box::new(Cursor::new(text.as_bytes().to_vec()))
}

fn open(reader: &dyn TableReader, source: Box<dyn Source>) -> Result<RemoteTable, ReadError> {
    let connection = connection(reader.start().unwrap());
    open_remote(connection, source, &ReadOptions::default(), ROWS)
}

fn cells(table: &mut RemoteTable) -> Vec<String> {
    let mut cells = Vec::new();
    while let Some(row) = table.next_row().unwrap() {
        cells.extend(row.cells.iter().flatten().map(ToString::to_string));
    }
    cells
}

/// A file that kills its reader when it is read to there.
struct Killing {
    file: Cursor<Vec<u8>>,
    at: u64,
    reader: Arc<dyn ReaderProcess>,
}

impl Read for Killing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.file.position() >= self.at {
            self.reader.kill();
        }
        self.file.read(buffer)
    }
}

impl Seek for Killing {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

crate::suite!(
    use reading as table_reader;

    /// All rows arrive, in order, also when there are more than fit a message.
    async fn a_table_is_read_to_its_end(harness: &Itself<impl Subject<dyn TableReader>>) {
        let reader = harness.subject();
        let numbers: Vec<String> = (0..80_000).map(|number: u32| number.to_string()).collect();
        let text = format!("n\n{}\n", numbers.join("\n"));
        let mut table = open(&*reader, file(&text)).unwrap();
        assert_eq!(table.row_count(), numbers.len());
        assert!(cells(&mut table) == numbers);
    }

    /// A reader reads one file, and two of them do not disturb each other.
    async fn readers_are_apart(harness: &Itself<impl Subject<dyn TableReader>>) {
        let reader = harness.subject();
        let mut first = open(&*reader, file("a\nx\n")).unwrap();
        let mut second = open(&*reader, file("a\ny\n")).unwrap();
        assert_eq!(cells(&mut second), ["y"]);
        assert_eq!(cells(&mut first), ["x"]);
    }

    /// A preview and a refusal are results.
    async fn a_preview_or_a_refusal_is_returned(harness: &Itself<impl Subject<dyn TableReader>>) {
        let reader = harness.subject();
        let options = ReadOptions::default();
        let started = connection(reader.start().unwrap());
        let preview = preview_remote(started, file("a;b\n1;2\n"), &options, ROWS, 50).unwrap();
        assert_eq!(preview.rows, [vec![1, 2]]);
        let started = connection(reader.start().unwrap());
        let refused = preview_remote(started, file(""), &options, ROWS, 50).err();
        assert!(matches!(refused, Some(ReadError::NoHeader)), "{refused:?}");
    }

    /// The output of a killed reader ends, and its end says so.
    async fn a_reader_that_is_killed_ends(harness: &Itself<impl Subject<dyn TableReader>>) {
        let reader = harness.subject();
        let started = reader.start().unwrap();
        let killing = Killing {
            file: Cursor::new("n\n1234567\n".repeat(100_000).into_bytes()),
            at: 500_000,
            reader: Arc::clone(&started.process),
        };
        let killed = open_remote(
            connection(started),
            Box::new(killing),
            &ReadOptions::default(),
            ROWS,
        );
        let Some(ReadError::Doubtful(end)) = killed.err() else {
            panic!("another end");
        };
        assert_eq!(end, "killed");
    }

    /// A reader that is dropped before it has responded leaves nothing, and others are read.
    async fn a_reader_that_is_dropped_is_gone(harness: &Itself<impl Subject<dyn TableReader>>) {
        let reader = harness.subject();
        for _ in 0..20 {
            drop(reader.start().unwrap());
            drop(open(&*reader, file("a\nx\n")).unwrap());
        }
        assert_eq!(cells(&mut open(&*reader, file("a\nx\n")).unwrap()), ["x"]);
    }
);
