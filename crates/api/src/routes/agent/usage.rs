//! `GET /api/v1/agent/usage`

use actix_web::web::Json;
use labdata_application::agent::get_usage::{MonthlyUsage, get_usage};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{ApiResult, Call, Read, Timestamp};

/// Tokens that an organization has used in the current month.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentMonthlyUsage)]
pub struct MonthlyUsageView {
    /// The month, in UTC.
    #[schema(example = "2026-03")]
    month: String,
    /// Tokens of the requests.
    input_tokens: u64,
    /// Tokens of the answers.
    output_tokens: u64,
    /// All tokens.
    total_tokens: u64,
    /// Number of tokens after which no run starts; null without a limit.
    token_budget: Option<u64>,
    /// When the next month begins.
    resets_at: Timestamp,
}

impl From<MonthlyUsage> for MonthlyUsageView {
    fn from(used: MonthlyUsage) -> Self {
        let first_day = used.month.first_day();
        Self {
            month: format!("{:04}-{:02}", first_day.year(), u8::from(first_day.month())),
            input_tokens: used.usage.input_tokens.unwrap_or_default(),
            output_tokens: used.usage.output_tokens.unwrap_or_default(),
            total_tokens: used.usage.total_tokens.unwrap_or_default(),
            token_budget: used.budget,
            resets_at: used.month.end().into(),
        }
    }
}

/// Shows the tokens that the organization's runs have used this month
///
/// Where a provider reports no usage, and for answers that were cut off, an estimate counts.
#[utoipa::path(
    get,
    path = "/api/v1/agent/usage",
    operation_id = "get_agent_usage",
    tag = "agent",
    responses((status = 200, description = "The usage", body = MonthlyUsageView))
)]
pub async fn handle(call: Call<Read>) -> ApiResult<Json<MonthlyUsageView>> {
    let used = get_usage(call.ports(), &call.app.agent, &call.actor).await?;
    Ok(Json(used.into()))
}
