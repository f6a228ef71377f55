//! Readings of files: which reader is asked, what is remembered, and who may.

use std::sync::Arc;

use labdata_application::{
    Error, Services,
    files::upload_file::{UploadFile, record_upload, store_upload},
    instruments::{
        create_instrument::{CreateInstrument, create_instrument},
        preview_reading::preview_reading,
        request_reading::request_reading,
        update_instrument::update_instrument,
    },
    triggers::fire_triggers::fire_triggers,
};
use labdata_domain::{
    files::FilePath,
    ids::{FileId, InstrumentId},
    instruments::{InstrumentChange, Reading},
    people::{actor::Actor, scope::Scope},
    refusal::ErrorCode,
};
use labdata_memory::ScriptedFileReader;

use crate::lab::Lab;

struct Readings {
    lab: Lab,
    reader: ScriptedFileReader,
    actor: Actor,
}

impl Readings {
    async fn new() -> Self {
        let mut lab = Lab::new().await;
        let reader = ScriptedFileReader::default();
        lab.services.ports.file_reader = Arc::new(reader.clone());
        let actor = lab.actor(&Scope::ALL);
        Self { lab, reader, actor }
    }

    fn services(&self) -> &Services {
        &self.lab.services
    }

    async fn instrument(&self, reader: Option<&str>) -> InstrumentId {
        let command = CreateInstrument {
            name: format!("{reader:?}"),
            description: None,
            instrument_type: None,
            reader: reader.map(str::to_owned),
            timezone: Some("Europe/Berlin".to_owned()),
        };
        let made = create_instrument(self.services(), &self.actor, command).await;
        made.unwrap().id
    }

    async fn file(&self, instrument: InstrumentId, name: &str) -> FileId {
        let bytes = bytes::Bytes::from_static(b"A1\t0.1\n");
        let command = UploadFile {
            path: FilePath::parse(name).unwrap(),
            content_type: None,
            execution: None,
            instrument: Some(instrument),
            source: None,
            bytes,
        };
        let stored = store_upload(self.services(), &self.actor, command)
            .await
            .unwrap();
        record_upload(self.services(), &self.actor, stored)
            .await
            .unwrap()
            .id
    }

    async fn read(&self, file: FileId, reader: Option<&str>) -> Result<Reading, Error> {
        let reader = reader.map(str::to_owned);
        let read = preview_reading(self.services(), &self.actor, file, reader).await;
        read.map(|read| read.reading)
    }
}

fn taken_by(reader: &str) -> Reading {
    Reading {
        reader: Some(reader.to_owned()),
        candidates: vec![reader.to_owned()],
        ..Reading::default()
    }
}

fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Option<ErrorCode> {
    outcome.unwrap_err().code()
}

#[tokio::test]
async fn auto_remembers_the_reader_that_took_the_last_file() {
    let lab = Readings::new().await;
    let instrument = lab.instrument(Some("auto")).await;
    let file = lab.file(instrument, "runs/one.txt").await;
    for reader in ["AGILENT_GEN5", "MOLDEV_SOFTMAX_PRO"] {
        lab.reader.then(taken_by(reader));
        lab.read(file, None).await.unwrap();
    }
    // A reading that fails, or with a named reader, changes nothing.
    lab.reader.then(Reading::default());
    lab.read(file, None).await.unwrap();
    lab.reader.then(taken_by("LUMINEX_XPONENT"));
    lab.read(file, Some("LUMINEX_XPONENT")).await.unwrap();
    lab.reader.then(Reading::default());
    lab.read(file, Some("")).await.unwrap();
    let requests = lab.reader.requests();
    let asked: Vec<(&str, Option<&str>)> = requests
        .iter()
        .map(|it| (it.reader.as_str(), it.preferred.as_deref()))
        .collect();
    assert_eq!(
        asked,
        [
            ("auto", None),
            ("auto", Some("AGILENT_GEN5")),
            ("auto", Some("MOLDEV_SOFTMAX_PRO")),
            ("LUMINEX_XPONENT", Some("MOLDEV_SOFTMAX_PRO")),
            ("auto", Some("MOLDEV_SOFTMAX_PRO")),
        ]
    );
    let first = &requests[0];
    assert_eq!(
        (first.file_name.as_str(), &first.content[..]),
        ("one.txt", &b"A1\t0.1\n"[..])
    );
    assert_eq!(first.timezone.as_deref(), Some("Europe/Berlin"));
}

#[tokio::test]
async fn a_reader_is_named_by_the_request_or_the_instrument() {
    let lab = Readings::new().await;
    let instrument = lab.instrument(None).await;
    let file = lab.file(instrument, "one.txt").await;
    assert_eq!(
        code(lab.read(file, None).await),
        Some(ErrorCode::InvalidValue)
    );
    assert_eq!(
        code(lab.read(file, Some("GEN5")).await),
        Some(ErrorCode::InvalidValue)
    );
    let queued = |reader: Option<&str>| {
        request_reading(lab.services(), &lab.actor, file, reader.map(str::to_owned))
    };
    assert_eq!(code(queued(None).await), Some(ErrorCode::InvalidValue));
    assert_eq!(
        code(queued(Some("GEN5")).await),
        Some(ErrorCode::InvalidValue)
    );
    let execution = queued(Some("AGILENT_GEN5")).await.unwrap();
    assert_eq!(execution.job_name, "Read instrument file");
    let run = execution.origin.run().unwrap();
    assert_eq!(
        (run.trigger_file, run.parameters["reader"].as_str()),
        (Some(file), Some("AGILENT_GEN5"))
    );
    let reader = lab.lab.actor(&[Scope::Read]);
    let refused = request_reading(lab.services(), &reader, file, Some("auto".to_owned())).await;
    assert_eq!(code(refused), Some(ErrorCode::ScopeMissing));
}

#[tokio::test]
async fn a_file_starts_the_job_while_its_instrument_has_a_reader() {
    let lab = Readings::new().await;
    let (read, other) = (
        lab.instrument(Some("auto")).await,
        lab.instrument(None).await,
    );
    lab.file(other, "one.txt").await;
    assert_eq!(fire_triggers(lab.services()).await.unwrap(), 0);
    lab.file(read, "two.txt").await;
    assert_eq!(fire_triggers(lab.services()).await.unwrap(), 1);
    let change = |reader: &str| InstrumentChange {
        reader: Some(reader.to_owned()),
        ..InstrumentChange::default()
    };
    for (id, reader) in [(read, ""), (other, "AGILENT_GEN5")] {
        update_instrument(lab.services(), &lab.actor, id, change(reader))
            .await
            .unwrap();
    }
    lab.file(read, "three.txt").await;
    assert_eq!(fire_triggers(lab.services()).await.unwrap(), 0);
    lab.file(other, "four.txt").await;
    assert_eq!(fire_triggers(lab.services()).await.unwrap(), 1);
    let unknown = update_instrument(lab.services(), &lab.actor, other, change("nobody")).await;
    assert_eq!(code(unknown), Some(ErrorCode::InvalidValue));
}
