//! Predicts the rows of a table, and writes the predictions into one of its columns.

use labdata_domain::{
    data::{
        read::{ReadPlan, ReadTarget, RowSelection},
        write::{Mode, Rows, TableWrite, WriteRequest, cell::Cell},
    },
    ids::{ExecutionId, ModelId},
    models::{
        InvalidRows, InvalidTablePrediction, MAX_PREDICTION_ROWS, MAX_TABLE_PREDICTION_ROWS,
        ModelVersion, TablePrediction, check_rows,
    },
    people::{actor::Actor, scope::Scope},
    refusal::{ErrorCode, Refusal, Refuse, Resource},
};
use labdata_ports::models::PredictError;
use serde_json::{Map, Value};

use super::{
    active_model::{ActiveModel, ModelReference, active_model},
    prediction_error::PredictionError,
};
use crate::{
    Error, Services,
    catalog::visible::{require_writable, visible_catalog},
    data::write_data::{WriteData, choose_target, write_data},
};

/// Number of rows that are read at a time.
const PAGE_ROWS: u32 = 1_000;

/// The rows to predict.
#[derive(Clone, Debug)]
pub struct PredictTable {
    /// The model.
    pub model: ModelId,
    /// Name of the table.
    pub table: String,
    /// Filters that the rows must meet.
    pub filters: Map<String, Value>,
    /// Column for the predictions.
    pub output_column: String,
    /// Id of the execution to record the write under; one is created if it is missing.
    pub job_execution_id: Option<String>,
}

/// Rows that were predicted.
#[derive(Clone, Debug)]
pub struct TablePredictions {
    /// The version that predicted.
    pub model: ModelVersion,
    /// Number of rows.
    pub rows: u64,
    /// The execution that the write is recorded under; `None` if no row met the filters.
    pub execution: Option<ExecutionId>,
}

/// Predicts all rows that meet the filters, and writes the predictions in one transaction.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` if there is no such model, table or
/// execution; `Invalid` if the model cannot predict the rows of the table, or there are too
/// many; `Unavailable` while the model does not predict; errors of [`write_data`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn predict_table(
    services: &Services,
    actor: &Actor,
    command: PredictTable,
) -> Result<TablePredictions, Error> {
    actor.require(Scope::Write)?;
    let reference = ModelReference::Id(command.model);
    let active = active_model(services, actor.organization, &reference).await?;
    let catalog = visible_catalog(services, actor).await?;
    let table = catalog
        .table(&command.table)
        .ok_or_else(|| Error::not_found(Resource::Table))?;
    require_writable(actor, table)?;
    let plan = TablePrediction::plan(table, &active.served.signature, &command.output_column)
        .map_err(|problems| listed(&problems))?;
    // Before the predictions, which take longer.
    choose_target(services, actor, command.job_execution_id.clone(), None).await?;
    let target = ReadTarget::Table(table.clone());
    let selection = RowSelection {
        filters: command.filters.clone(),
        limit: PAGE_ROWS,
        ..RowSelection::default()
    };
    let read = ReadPlan::new(target, &catalog, selection)
        .map_err(|problems| Refusal::invalid(ErrorCode::InvalidRead, problems.join("; ")))?;
    let predicted = predict_all(services, actor, &active, &plan, read).await?;
    let rows = u64::try_from(predicted.len()).unwrap_or(u64::MAX);
    let mut execution = None;
    // Without rows there is nothing to record, so no execution is opened.
    if rows > 0 {
        let write = WriteData {
            request: WriteRequest {
                tables: vec![TableWrite {
                    table: plan.table,
                    rows: predicted,
                    mode: Mode::Update,
                    ..TableWrite::default()
                }],
                ..WriteRequest::default()
            },
            job_execution_id: command.job_execution_id,
            job_name: None,
            max_rows: Some(MAX_TABLE_PREDICTION_ROWS),
        };
        execution = write_data(services, actor, write).await?.execution;
    }
    Ok(TablePredictions {
        model: active.version,
        rows,
        execution,
    })
}

fn listed(problems: &[InvalidTablePrediction]) -> Error {
    Error::refused_for_all(problems)
}

/// Reads and predicts the rows, a batch at a time. Returns their keys with the predictions.
async fn predict_all(
    services: &Services,
    actor: &Actor,
    active: &ActiveModel,
    plan: &TablePrediction,
    mut read: ReadPlan,
) -> Result<Rows, Error> {
    let mut predicted = Rows::default();
    let mut batch = Batch::default();
    loop {
        let page = services.data.read(actor.organization, &read).await?;
        for row in page.rows {
            let row: Map<String, Value> = serde_json::from_str(row.as_str())
                .map_err(|error| Error::Internal(format!("a rendered row: {error}")))?;
            batch.keys.push(plan.key_of(&row));
            batch.rows.extend([row]);
            if batch.rows.len() == MAX_PREDICTION_ROWS {
                let full = std::mem::take(&mut batch);
                full.predict(services, active, plan, &mut predicted).await?;
            }
        }
        // With each page: the number of rows is not known before they are read.
        if predicted.len() + batch.rows.len() > MAX_TABLE_PREDICTION_ROWS {
            return Err(listed(&[InvalidTablePrediction::TooManyRows]));
        }
        match page.next {
            Some(next) => read.after = Some(next),
            None => break,
        }
    }
    if !batch.rows.is_empty() {
        batch
            .predict(services, active, plan, &mut predicted)
            .await?;
    }
    Ok(predicted)
}

/// Rows that are predicted together.
#[derive(Debug, Default)]
struct Batch {
    keys: Vec<Cell>,
    rows: Rows,
}

impl Batch {
    async fn predict(
        self,
        services: &Services,
        active: &ActiveModel,
        plan: &TablePrediction,
        predicted: &mut Rows,
    ) -> Result<(), Error> {
        let refused = |problems: &InvalidRows| {
            let message = plan.describe(problems, &self.keys);
            Error::from(Refusal::invalid(problems.code(), message))
        };
        let input = check_rows(&active.served.signature.features, &self.rows)
            .map_err(|problems| refused(&problems))?;
        let predictions = match active.predict(services, input, None).await {
            Err(PredictionError::Predictor(PredictError::Rejected(problems))) => {
                return Err(refused(&problems));
            }
            predictions => predictions?,
        };
        for (key, value) in self.keys.into_iter().zip(predictions.values) {
            predicted.begin_row();
            predicted.set(0, &plan.key, key);
            predicted.set(1, &plan.output, plan.cell(value));
        }
        Ok(())
    }
}
