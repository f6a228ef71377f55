//! `POST /api/v1/files/{file_id}/read`

use std::sync::Arc;

use labdata_application::{
    Error,
    instruments::{
        preview_reading::{FileReading, preview_reading},
        request_reading::request_reading,
    },
    slots::Work,
};
use labdata_domain::{
    ids::{FileId, InstrumentId},
    instruments::{Curve, MAX_READER_LENGTH, ReaderRefusal, Reading},
    refusal::Resource,
};
use labdata_limits::Slot;
use labdata_request_body::{
    Definitions, Output, Reader as _, Schema,
    fields::{optional, or},
    output,
    output::serde,
    readers::{boolean, text},
    shape,
};
use serde_json::{Map, Value, json};

use super::FilePathId;
use crate::{
    About, Call, Describe, Method, Operation, OptionalJson, OrNotFound, Reply, Respond, Tag, Write,
    executions::{ExecutionView, view},
};

/// Number of rows that a dry run shows.
const SHOWN_ROWS: usize = 20;

shape! {
    /// Options for reading a file. The body may be empty or null.
    #[derive(Clone, Debug, Default)]
    pub struct ReadFileBody {
        /// The reader: `auto`, or a name that `GET /readers` lists; that of the file's instrument unless
        /// given.
        reader: Option<String> = optional(text(..=MAX_READER_LENGTH).example("auto")),
        /// Reads the file now, and writes nothing. Needs the scope read as well.
        dry_run: bool = or(false, boolean()),
        /// With `dry_run`: the response has everything that the file holds, in `result`.
        complete: bool = or(false, boolean()),
    }
    example json!({"reader": "auto"});
}

output! {
    /// Result of reading a file.
    #[derive(Clone, Debug)]
    pub struct FileReadingView as "FileReading" {
        /// The reader that took the file; null if none did, or several.
        reader: Option<String>,
        /// The readers that take the file.
        candidates: Vec<String>,
        /// Number of measurements, curves included.
        measurements: usize,
        /// Number of curves.
        curves: usize,
        /// The first 20 rows of `instrument_measurement`.
        rows: Vec<Map<String, Value>>,
        /// Remarks for a person; where no reader read the file, the reason first.
        doubts: Vec<String>,
        /// The readers that do not take the file, with their reasons.
        refusals: Vec<ReaderRefusalView>,
        /// Everything that the file holds, if it was asked for.
        #[optional]
        result: Option<CompleteReadingView>,
    }
}

output! {
    /// A reader that does not take a file.
    #[derive(Clone, Debug)]
    pub struct ReaderRefusalView as "ReaderRefusal" from refusal: ReaderRefusal {
        /// Its name.
        reader: String = refusal.reader,
        /// The reason.
        reason: String = refusal.reason,
    }
}

output! {
    /// Everything that a file holds.
    #[derive(Clone, Debug)]
    pub struct CompleteReadingView as "CompleteFileReading" {
        /// Rows of `instrument_measurement`.
        measurements: Vec<Map<String, Value>>,
        /// The curves.
        curves: Vec<CurveView>,
        /// The document of the Allotrope Simple Model (ASM).
        document: Value,
    }
}

output! {
    /// A curve of a file.
    #[derive(Clone, Debug)]
    pub struct CurveView as "InstrumentCurve" from curve: Curve {
        /// Index of its measurement.
        measurement: usize = curve.measurement,
        /// Positions.
        x: Vec<Option<f64>> = curve.x,
        /// Values; null where the file has no number.
        y: Vec<Option<f64>> = curve.y,
    }
}

/// The response: an execution, or a reading.
#[derive(Debug)]
pub enum ReadFileView {
    /// The execution that reads the file.
    Queued(Box<ExecutionView>),
    /// The result of a dry run.
    Read(Box<FileReadingView>),
}

impl serde::Serialize for ReadFileView {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Queued(execution) => execution.serialize(serializer),
            Self::Read(reading) => reading.serialize(serializer),
        }
    }
}

impl Output for ReadFileView {
    fn schema(definitions: &mut Definitions) -> Schema {
        Schema::one_of([
            ExecutionView::schema(definitions),
            FileReadingView::schema(definitions),
        ])
    }
}

/// The response before it is sent.
struct ReadFileReply {
    view: ReadFileView,
    /// Held until a reading is sent.
    slot: Option<Slot>,
}

impl Describe for ReadFileReply {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        ReadFileView::content(definitions)
    }
}

impl Respond for ReadFileReply {
    fn reply(self) -> Result<Reply, Error> {
        Ok(Reply {
            is_dry_run: matches!(self.view, ReadFileView::Read(_)),
            slot: self.slot,
            ..self.view.reply()?
        })
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "read_instrument_file",
        method: Method::Post,
        path: "/api/v1/files/{file_id}/read",
        tag: Tag::Files,
        summary: "Reads a file of an instrument",
        description: "Queues a run of the job `Read instrument file`, which writes what is in the file to \
            `instrument_measurement` and `instrument_curve`. With `dry_run` the file is read at once, and nothing is \
            written.",
        returns: "The execution, or the result of a dry run",
        refusals: &[
            (
                400,
                "There is no such reader, or none is named; the file takes too much to read; or the organization \
                 has a table of its own by the name of one to which readers write",
            ),
            (503, "The readers are being prepared, or cannot run on this server"),
        ],
    }
    .runs_after(read, run)
    .creating()
}

type ReadFileCall = Call<Write, OptionalJson<ReadFileBody>, (), FilePathId>;

/// Reads the file of a dry run; `None` where a run reads it.
fn read(
    call: &ReadFileCall,
) -> impl Future<Output = Option<Result<FileReading, Error>>> + Send + use<> {
    let (services, actor) = (Arc::clone(&call.services), call.actor.clone());
    let id = call.path.file_id.or_not_found(Resource::File);
    let body = call.body.clone().unwrap_or_default();
    async move {
        if !body.dry_run {
            return None;
        }
        let id = match id {
            Ok(id) => id,
            Err(error) => return Some(Err(error)),
        };
        Some(preview_reading(&services, &actor, id, body.reader).await)
    }
}

async fn run(
    call: ReadFileCall,
    read: Option<Result<FileReading, Error>>,
) -> Result<ReadFileReply, Error> {
    let body = call.body.unwrap_or_default();
    if let Some(read) = read {
        let read = read?;
        let slots = &call.services.slots;
        let slot = slots.enter(Work::Result, &call.actor).await?;
        return Ok(ReadFileReply {
            view: ReadFileView::Read(Box::new(view_of(read, body.complete))),
            slot: Some(slot),
        });
    }
    let id = call.path.file_id.or_not_found(Resource::File)?;
    let execution = request_reading(&call.services, &call.actor, id, body.reader).await?;
    let execution = view(&call.services, &call.actor, execution).await?;
    Ok(ReadFileReply {
        view: ReadFileView::Queued(Box::new(execution)),
        slot: None,
    })
}

fn view_of(read: FileReading, is_complete: bool) -> FileReadingView {
    let problem = read.reading.problem();
    let instrument = read.file.attribution.instrument();
    let Reading {
        reader,
        candidates,
        refusals,
        measurements,
        curves,
        doubts,
        document,
    } = read.reading;
    let rows = measurements.into_iter();
    let mut rows: Vec<Map<String, Value>> = rows
        .map(|row| with_source(row, read.file.id, instrument))
        .collect();
    let counts = (rows.len(), curves.len());
    let first = rows.iter().take(SHOWN_ROWS).cloned().collect();
    let result = is_complete.then(|| CompleteReadingView {
        measurements: std::mem::take(&mut rows),
        curves: curves.into_iter().map(CurveView::from).collect(),
        document,
    });
    FileReadingView {
        reader,
        candidates,
        measurements: counts.0,
        curves: counts.1,
        rows: first,
        doubts: problem.into_iter().chain(doubts).collect(),
        refusals: refusals.into_iter().map(ReaderRefusalView::from).collect(),
        result,
    }
}

fn with_source(
    mut row: Map<String, Value>,
    file: FileId,
    instrument: Option<InstrumentId>,
) -> Map<String, Value> {
    row.insert("file_id".to_owned(), json!(file.to_string()));
    row.insert(
        "instrument_id".to_owned(),
        json!(instrument.map(|id| id.to_string())),
    );
    row
}
