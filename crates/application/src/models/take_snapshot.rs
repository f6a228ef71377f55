//! Stores the rows of a dataset, before the dataset itself.

use std::{collections::BTreeSet, fmt, sync::Arc};

use async_trait::async_trait;
use futures::{SinkExt, channel::mpsc};
use labdata_domain::{
    catalog::TableIdentity,
    data::query::{QueryText, SNAPSHOT_LIMITS},
    files::{File, FileRefusal, FileState, ObjectKey},
    ids::FileId,
    instruments::images::{AnnotationRefusal, Label},
    models::{
        DatasetColumn, DatasetMask, DatasetSource, IMAGE_COLUMN, MASK_COLUMN, MAX_DATASET_ROWS,
    },
    people::{actor::Actor, scope::Scope},
    scalar::DataType,
};
use labdata_ports::{
    data::query::{Query, QueryError, ResultColumn, ResultSink, SinkClosed},
    files::blob::BlobReader,
};
use labdata_table_formats::read::{ReadOptions, Reading};

use super::snapshot::{
    Outlet, StoredTable,
    masks::unite_masks,
    store,
    table::{Rows, write_file, write_rows},
};
use crate::{
    Error, Services,
    catalog::visible::visible_catalog,
    data::query_data::query_view,
    files::{ongoing_uploads::OngoingUpload, upload_room::reserve},
    reading::Reader,
    slots::Work,
};

/// Number of parts of a result that wait to be written. A part is about a mebibyte.
const WAITING_PARTS: usize = 2;

/// Origin of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum SnapshotSource {
    /// The result of this query.
    Query(String),
    /// A file of the platform, read with these options.
    File(FileId, Box<ReadOptions>),
    /// Images with masks of this label that a person has vetted.
    Annotations(String),
}

/// Rows that are stored and belong to no dataset yet. Without one, a sweeper removes them.
pub struct Snapshot {
    pub(super) source: DatasetSource,
    pub(super) tables: BTreeSet<TableIdentity>,
    pub(super) object: ObjectKey,
    pub(super) size: u64,
    pub(super) columns: Vec<DatasetColumn>,
    pub(super) row_count: u64,
    pub(super) reading: Option<Reading>,
    /// Masks of images, which are objects too.
    pub(super) masks: Vec<DatasetMask>,
    /// Counts the bytes until a dataset does.
    _upload: Arc<OngoingUpload>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("source", &self.source)
            .field("object", &self.object)
            .finish_non_exhaustive()
    }
}

/// Stores the rows of a query, a file or annotations as one Parquet object, in constant memory.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` for an unknown file;
/// `Invalid` when the query is refused, the file is no table, or the table is none that
/// datasets have; `InsufficientStorage` when there is no room.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn take_snapshot(
    services: &Services,
    actor: &Actor,
    source: SnapshotSource,
) -> Result<Snapshot, Error> {
    actor.require(Scope::Write)?;
    let _slot = services.slots.enter(Work::Snapshot, actor).await?;
    match source {
        SnapshotSource::Query(sql) => of_query(services, actor, sql).await,
        SnapshotSource::File(id, options) => of_file(services, actor, id, *options).await,
        SnapshotSource::Annotations(label) => of_annotations(services, actor, &label).await,
    }
}

async fn of_query(services: &Services, actor: &Actor, sql: String) -> Result<Snapshot, Error> {
    let text = QueryText::parse(&sql).map_err(Error::refused)?;
    // A dataset is defined by the text of its query alone: no values come with it.
    text.check_parameters(0).map_err(Error::refused)?;
    let query = Query {
        text,
        params: Vec::new(),
        limits: SNAPSHOT_LIMITS,
        view: query_view(services, actor).await?,
    };
    let (object, upload) = begin(services, actor).await?;
    let (sender, rows) = mpsc::channel(WAITING_PARTS);
    let work = move |outlet: &mut Outlet| write_rows(rows, outlet);
    let supply = async {
        let mut sink = Feed(sender);
        services
            .queries
            .stream(actor.organization, &query, &mut sink)
            .await?;
        // A closed channel alone could also mean that the query failed.
        sink.send(Rows::End).await.map_err(QueryError::from)
    };
    // A table that is hidden from the caller cannot be read, and must not be found by its name.
    let named = async || -> Result<_, Error> {
        Ok(query
            .text
            .tables_named(&*visible_catalog(services, actor).await?))
    };
    let mut tables = named().await?;
    let stored = store(services, (object, &upload), work, supply).await?;
    // Again, as the query may have read a table that has got its name since.
    tables.extend(named().await?);
    Ok(Snapshot {
        tables,
        ..snapshot(DatasetSource::Query(sql), object, upload, stored)
    })
}

async fn of_file(
    services: &Services,
    actor: &Actor,
    id: FileId,
    options: ReadOptions,
) -> Result<Snapshot, Error> {
    let File { state, .. } = services.files.get(actor.organization, id).await?;
    let FileState::Confirmed { object: bytes, .. } = state else {
        return Err(Error::refused(FileRefusal::NotConfirmed));
    };
    let (object, upload) = begin(services, actor).await?;
    let source: Box<dyn BlobReader> = services.blobs.open(actor.organization, bytes).await?;
    let (reader, _guard) = Reader::start(services)?;
    let work = move |outlet: &mut Outlet| {
        let mut table = reader.open(Box::new(source), &options, MAX_DATASET_ROWS)?;
        write_file(&mut table, outlet)
    };
    let stored = store(services, (object, &upload), work, async { Ok(()) }).await?;
    Ok(snapshot(DatasetSource::File(id), object, upload, stored))
}

async fn of_annotations(
    services: &Services,
    actor: &Actor,
    label: &str,
) -> Result<Snapshot, Error> {
    let label =
        Label::parse(label).map_err(|reason| Error::refused(AnnotationRefusal::from(reason)))?;
    let (object, upload) = begin(services, actor).await?;
    let images = unite_masks(services, actor, &label, &upload).await?;
    let (sender, rows) = mpsc::channel(WAITING_PARTS);
    let work = move |outlet: &mut Outlet| write_rows(rows, outlet);
    let cells = images.iter().map(|(file, mask)| {
        // Ids are texts without a character that JSON escapes.
        format!("[\"{file}\",\"{}\"]", mask.object)
    });
    let cells = cells.collect();
    let supply = async {
        let mut sink = Feed(sender);
        let columns = [IMAGE_COLUMN, MASK_COLUMN].map(|name| (name.to_owned(), DataType::String));
        sink.send(Rows::Columns(columns.into())).await?;
        sink.send(Rows::Part(cells)).await?;
        sink.send(Rows::End).await.map_err(QueryError::from)
    };
    let stored = store(services, (object, &upload), work, supply).await?;
    let source = DatasetSource::Annotations(label.as_str().to_owned());
    Ok(Snapshot {
        masks: images.into_iter().map(|(_, mask)| mask).collect(),
        ..snapshot(source, object, upload, stored)
    })
}

/// Begins a new object.
async fn begin(
    services: &Services,
    actor: &Actor,
) -> Result<(ObjectKey, Arc<OngoingUpload>), Error> {
    let object = ObjectKey::new(services.ids.next_id());
    let upload = services.ongoing_uploads.begin(actor.organization, object);
    let upload = upload.ok_or_else(|| Error::Internal("an id was made twice".to_owned()))?;
    // The size is not known yet; the body is checked while it is written.
    reserve(services, &upload, 0).await?;
    Ok((object, Arc::new(upload)))
}

fn snapshot(
    source: DatasetSource,
    object: ObjectKey,
    upload: Arc<OngoingUpload>,
    stored: StoredTable,
) -> Snapshot {
    Snapshot {
        source,
        tables: BTreeSet::new(),
        object,
        size: stored.size,
        columns: stored.table.columns,
        row_count: stored.table.row_count,
        reading: stored.table.reading,
        masks: Vec::new(),
        // Counts toward the quota until the record of the dataset does.
        _upload: upload,
    }
}

/// Hands the result of a query to the thread that writes it.
struct Feed(mpsc::Sender<Rows>);

impl Feed {
    async fn send(&mut self, rows: Rows) -> Result<(), SinkClosed> {
        self.0.send(rows).await.map_err(|_| SinkClosed)
    }
}

#[async_trait]
impl ResultSink for Feed {
    async fn begin(&mut self, columns: Vec<ResultColumn>) -> Result<(), SinkClosed> {
        let columns = columns.into_iter();
        let columns = columns.map(|column| (column.name, column.data_type));
        self.send(Rows::Columns(columns.collect())).await
    }

    async fn rows(&mut self, rows: Vec<String>) -> Result<(), SinkClosed> {
        self.send(Rows::Part(rows)).await
    }
}
