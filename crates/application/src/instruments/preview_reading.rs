//! Reads a file of an instrument without writing anything.

use labdata_domain::{
    files::File,
    ids::FileId,
    instruments::{
        AUTO_READER, InstrumentChange, MAX_READING_FILE_BYTES, NoReader, Reading, ReadingFailure,
        check_reader,
    },
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::{PortError, instruments::ReadingRequest};

use super::reader_job::check_tables;
use crate::{Error, Services, files::read_file::read_file};

/// A file, and what readers find in it.
#[derive(Clone, Debug)]
pub struct FileReading {
    /// The file.
    pub file: File,
    /// The reading.
    pub reading: Reading,
}

/// Reads a file with the reader, or that of the file's instrument. A success of `auto` is remembered at the
/// instrument.
///
/// # Errors
/// `Forbidden` without the scopes read and write; `NotFound`; `Invalid` for an unknown reader, where neither
/// the request nor the instrument names one, where the organization has its own table by the name of one
/// to which readers write, while the file awaits its bytes, and for a file that takes too much to read;
/// `Unavailable` while readers cannot run.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn preview_reading(
    services: &Services,
    actor: &Actor,
    id: FileId,
    reader: Option<String>,
) -> Result<FileReading, Error> {
    actor.require(Scope::Write)?;
    let record = services.files.get(actor.organization, id).await?;
    let instrument = match record.attribution.instrument() {
        Some(id) => Some(services.instruments.get(actor.organization, id).await?),
        None => None,
    };
    let of_instrument = || instrument.as_ref().and_then(|it| it.reader.clone());
    let reader = reader
        .filter(|name| !name.is_empty())
        .or_else(of_instrument);
    let reader = reader.ok_or_else(|| Error::refused(NoReader))?;
    check_reader(&reader).map_err(Error::refused)?;
    check_tables(&*services.catalog.snapshot(actor.organization).await?)?;
    let read = read_file(services, actor, id, MAX_READING_FILE_BYTES).await?;
    let (file, content) = read.ok_or_else(|| Error::refused(ReadingFailure::FileTooLarge))?;
    let is_auto = reader == AUTO_READER;
    let request = ReadingRequest {
        organization: actor.organization,
        file_name: file.path.file_name().to_owned(),
        content,
        reader,
        preferred: instrument.as_ref().and_then(|it| it.last_reader.clone()),
        timezone: instrument.as_ref().and_then(|it| it.timezone.clone()),
    };
    let reading = services.file_reader.read(request).await;
    let reading = reading.map_err(Error::refused)?;
    if let (true, Some(instrument), Some(found)) = (is_auto, &instrument, &reading.reader)
        && instrument.last_reader.as_ref() != Some(found)
    {
        let change = InstrumentChange {
            last_reader: Some(found.clone()),
            ..InstrumentChange::default()
        };
        match services
            .instruments
            .update(actor.organization, instrument.id, &change)
            .await
        {
            // Deleted in the meantime.
            Ok(_) | Err(PortError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(FileReading { file, reading })
}
