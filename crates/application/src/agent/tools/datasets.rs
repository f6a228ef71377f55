//! The tool `list_datasets`.

use async_trait::async_trait;
use labdata_domain::{models::Dataset, page::PageRequest, timestamp};
use labdata_request_body::{fields::or, readers::unsigned, shape};
use serde_json::{Value, json};

use super::{ToolContext, TypedTool};
use crate::{Error, models::list_datasets::list_datasets};

shape! {
    /// Arguments of `list_datasets`.
    pub(super) struct ListDatasetsInput {
        /// Maximum number of datasets.
        limit: u32 = or(50, unsigned(1..=200)),
    }
}

/// Datasets.
pub(super) struct ListDatasets;

#[async_trait]
impl TypedTool for ListDatasets {
    type Input = ListDatasetsInput;
    const NAME: &'static str = "list_datasets";
    const DESCRIPTION: &'static str = "Lists datasets, which models are trained on, with their columns, \
        newest first.";
    const NEEDS_WRITE: bool = false;

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: ListDatasetsInput,
    ) -> Result<String, Error> {
        let page = PageRequest {
            limit: Some(input.limit),
            after: None,
        };
        let page = list_datasets(context.ports, context.actor, page).await?;
        let datasets: Vec<Value> = page.items.iter().map(dataset_json).collect();
        Ok(json!({ "datasets": datasets, "more": page.next.is_some() }).to_string())
    }
}

fn dataset_json(dataset: &Dataset) -> Value {
    let columns = dataset.columns.iter();
    let columns = columns
        .map(|column| json!({ "name": column.name, "data_type": column.data_type.as_str() }));
    json!({
        "id": dataset.id.to_string(),
        "name": dataset.name,
        "description": dataset.description,
        "columns": columns.collect::<Vec<_>>(),
        "row_count": dataset.row_count,
        "created_at": timestamp::render(dataset.created_at),
    })
}
