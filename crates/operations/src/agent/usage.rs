//! `GET /api/v1/agent/usage`

use labdata_application::{
    Error,
    agent::get_usage::{MonthlyUsage, get_usage},
};
use labdata_request_body::{Timestamp, output};

use crate::{About, Call, Method, Operation, Read, Tag};

output! {
    /// Tokens that an organization has used in the current month.
    #[derive(Debug)]
    pub struct MonthlyUsageView as "AgentMonthlyUsage" from used: MonthlyUsage {
        /// The month, in UTC.
        #[example = "2026-03"]
        month: String = {
            let first_day = used.month.first_day();
            format!("{:04}-{:02}", first_day.year(), u8::from(first_day.month()))
        },
        /// Tokens of the requests.
        input_tokens: u64 = used.usage.input_tokens.unwrap_or_default(),
        /// Tokens of the responses.
        output_tokens: u64 = used.usage.output_tokens.unwrap_or_default(),
        /// All tokens.
        total_tokens: u64 = used.usage.total_tokens.unwrap_or_default(),
        /// Number of tokens after which no run starts; null without a limit.
        token_budget: Option<u64> = used.budget,
        /// When the next month begins.
        resets_at: Timestamp = used.month.end().into(),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_agent_usage",
        method: Method::Get,
        path: "/api/v1/agent/usage",
        tag: Tag::Agent,
        summary: "Shows the tokens that the organization's runs have used this month",
        description: "Where a provider reports no usage, and for responses that were cut off, an estimate \
            counts.",
        returns: "The usage",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read>) -> Result<MonthlyUsageView, Error> {
    let used = get_usage(&call.services, &call.platform.agent, &call.actor).await?;
    Ok(used.into())
}
