//! A training that needs more memory than it may use.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::stream;
use labdata_domain::{
    files::ObjectKey,
    ids::DatasetId,
    models::{
        ColumnProfile, Dataset, DatasetColumn, DatasetSource, MAX_DATASET_BYTES, QualityPreset,
        TrainingPhase,
    },
    scalar::DataType,
    storage::StorageQuota,
};
use parquet::{
    data_type::DoubleType,
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};

use super::training_lab::{TrainingLab, processes, workspaces};

/// Number of rows and of columns besides the target: as doubles they take 640 MB, and those of the rows
/// with a target once more.
const ROWS: u32 = 1_000_000;
const COLUMNS: usize = 80;

/// Rows with a value in each column. Nulls take no space in a file.
const VALUES: u32 = 10;

const TARGET: &str = "target";

fn names() -> impl Iterator<Item = String> {
    let features = (0..COLUMNS).map(|number| format!("feature_{number}"));
    features.chain([TARGET.to_owned()])
}

/// A Parquet file of some megabytes.
fn parquet() -> Vec<u8> {
    let fields: Vec<String> = names()
        .map(|name| format!("optional double {name};"))
        .collect();
    let fields = fields.concat();
    let schema = Arc::new(parse_message_type(&format!("message rows {{ {fields} }}")).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for number in 0..=COLUMNS {
        let values = if number == COLUMNS { ROWS } else { VALUES };
        let levels: Vec<i16> = (0..ROWS).map(|row| i16::from(row < values)).collect();
        let values: Vec<f64> = (0..values).map(f64::from).collect();
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<DoubleType>();
        typed.write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// Stores the file as a dataset.
async fn dataset(lab: &TrainingLab) -> Dataset {
    let (server, file) = (&lab.server, parquet());
    let services = &server.services;
    let column = |name: String| {
        let values = if name == TARGET { ROWS } else { VALUES };
        DatasetColumn {
            name,
            data_type: DataType::Float,
            profile: ColumnProfile {
                nulls: (ROWS - values).into(),
                distinct: Some(values.into()),
            },
        }
    };
    let dataset = Dataset {
        id: DatasetId::new(services.ids.next_id()),
        name: "wide".to_owned(),
        description: None,
        columns: names().map(column).collect(),
        row_count: ROWS.into(),
        source: DatasetSource::Query("SELECT * FROM wide".to_owned()),
        tables: BTreeSet::new(),
        object: ObjectKey::new(services.ids.next_id()),
        size: file.len().try_into().unwrap(),
        created_by: server.user,
        created_at: services.clock.now(),
    };
    let body = Box::pin(stream::iter([Ok(Bytes::from(file))]));
    let organization = server.organization;
    let stored = services
        .blobs
        .put_new(organization, dataset.object, body, MAX_DATASET_BYTES);
    stored.await.unwrap();
    let added = services
        .datasets
        .add(organization, &dataset, StorageQuota::UNLIMITED);
    added.await.unwrap();
    dataset
}

#[tokio::test]
async fn a_training_that_needs_too_much_memory_ends_with_advice() {
    let mut lab = TrainingLab::start().await;
    lab.limits.memory = 1 << 30;
    let dataset = dataset(&lab).await;
    let worker = lab.worker(&lab.sandbox());
    let queued = lab.train_on(&dataset, TARGET, QualityPreset::Medium).await;
    let failed = lab.ended(&queued).await;
    let expected = "the training needs more than the 1024 MiB of memory that it may use; use fewer rows or \
                    feature columns, choose medium_quality, or ask the operator for a higher \
                    LABDATA_TRAINING_MEMORY";
    assert_eq!(failed.error(), Some(expected));
    // Its programs fit into the limit, the rows do not.
    let phase = failed.progress.as_ref().unwrap().phase;
    assert!(
        matches!(phase, TrainingPhase::Reading | TrainingPhase::Checking),
        "{phase:?}"
    );
    worker.stop(Duration::from_secs(10)).await;
    assert!(processes(&failed).is_empty() && workspaces(&failed).is_empty());
}
