//! Compares the ledger with what the platform holds.

mod objects;
mod runs;

use std::time::Instant;

use serde_json::Value;

use crate::{
    client::{Client, Outcome, Request},
    events::Follower,
    ledger::Kind,
    load::Load,
};

/// Rows of a page.
const PAGE: u32 = 1000;

/// Compares everything; returns what is wrong.
pub(crate) async fn verify(load: &Load, follower: &Follower, client: &Client) -> Vec<String> {
    let verification = Verification {
        load,
        follower,
        client,
    };
    match verification.run().await {
        Ok(problems) => problems,
        Err(error) => vec![format!("the check could not be completed: {error:#}")],
    }
}

struct Verification<'l> {
    load: &'l Load,
    follower: &'l Follower,
    client: &'l Client,
}

impl Verification<'_> {
    async fn run(&self) -> anyhow::Result<Vec<String>> {
        let settles_until = Instant::now() + self.load.options.settle;
        let mut problems = self.settle(settles_until).await?;
        let mut found = Vec::new();
        for kind in Kind::ALL {
            let objects = self.find(kind).await?;
            problems.extend(self.load.ledger.compare(kind, &objects));
            found.extend(objects.into_iter().map(|object| (kind, object.name)));
        }
        let found: std::collections::HashSet<(Kind, String)> = found.into_iter().collect();
        let exists = |kind: Kind, name: &str| found.contains(&(kind, name.to_owned()));
        problems.extend(self.load.ledger.torn_groups(exists));
        problems.extend(self.executions().await?);
        problems.extend(self.runs().await?);
        problems.extend(self.events(settles_until).await?);
        problems.extend(self.revoked_keys(settles_until).await?);
        Ok(problems)
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let request = Request::get("check", path);
        match self.client.send(&request).await {
            Outcome::Done(response) => Ok(response.json()),
            Outcome::Refused(response) => anyhow::bail!("{path}: {}", response.status),
            Outcome::Unknown => anyhow::bail!("{path}: no answer"),
        }
    }

    /// Reads a list to its end.
    async fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let mut items = Vec::new();
        let separator = if path.contains('?') { '&' } else { '?' };
        let mut path = format!("{path}{separator}limit={PAGE}");
        loop {
            let request = Request::get("check", path.clone());
            let response = match self.client.send(&request).await {
                Outcome::Done(response) => response,
                Outcome::Refused(response) => anyhow::bail!("{path}: {}", response.status),
                Outcome::Unknown => anyhow::bail!("{path}: no answer"),
            };
            if let Value::Array(page) = response.json() {
                items.extend(page);
            }
            let Some(next) = response.next_page() else {
                return Ok(items);
            };
            path = format!("{}?{}", next.path(), next.query().unwrap_or_default());
        }
    }

    /// Reads a request's JSON, which must be acknowledged.
    async fn post(&self, path: &str, body: Value) -> anyhow::Result<crate::client::Response> {
        let request = Request::post("check", path, body);
        match self.client.send(&request).await {
            Outcome::Done(response) => Ok(response),
            Outcome::Refused(response) => anyhow::bail!(
                "{path}: {} {}",
                response.status,
                String::from_utf8_lossy(&response.body)
            ),
            Outcome::Unknown => anyhow::bail!("{path}: no answer"),
        }
    }
}
