//! Finds the objects of the ledger's kinds.

use serde_json::{Value, json};

use super::{PAGE, Verification, runs::first_attempts};
use crate::{
    client::text_of,
    ledger::{Found, Kind},
};

/// Curves of one query, whose result is limited to 10,000 rows.
const CURVES: usize = 5000;

impl Verification<'_> {
    /// Finds all objects of a kind that this load created.
    pub(super) async fn find(&self, kind: Kind) -> anyhow::Result<Vec<Found>> {
        match kind {
            Kind::Sample => self.rows("load_sample").await,
            Kind::Reading => self.rows("load_reading").await,
            Kind::Plate => self.rows("load_plate").await,
            Kind::Curve => self.curves().await,
            Kind::File => {
                let path = format!("/api/v1/files?query={}-", self.load.run);
                self.listed(&path, "original_path", |file| text_of(file, "crc32c_hash"))
                    .await
            }
            Kind::Notification => {
                self.listed("/api/v1/notifications", "title", |_| String::new())
                    .await
            }
            Kind::Dataset => {
                self.listed("/api/v1/datasets", "name", |_| String::new())
                    .await
            }
            Kind::Job => {
                self.listed("/api/v1/jobs?archived=true", "name", |job| {
                    let archived = job.get("archived").cloned().unwrap_or_default();
                    format!("{} {archived}", text_of(job, "description"))
                })
                .await
            }
            Kind::Model => {
                self.listed("/api/v1/ml-models", "name", |model| {
                    model
                        .get("version_number")
                        .cloned()
                        .unwrap_or_default()
                        .to_string()
                })
                .await
            }
            Kind::ApiKey => {
                self.listed("/api/v1/api-keys", "name", |key| {
                    let is_revoked = key.get("revoked_at").is_some_and(Value::is_string);
                    if is_revoked { "revoked" } else { "active" }.to_owned()
                })
                .await
            }
            Kind::Table => self.tables().await,
            Kind::Run => {
                let path = format!("/api/v1/job-executions?job_id={}", self.load.lab.run_job);
                let executions = self.list(&path).await?;
                let found = first_attempts(&executions).map(|execution| {
                    let parameters = execution.get("parameters").cloned().unwrap_or_default();
                    Found {
                        name: text_of(&parameters, "tag"),
                        state: String::new(),
                    }
                });
                Ok(found.collect())
            }
        }
    }

    /// Finds the items of a list whose name begins with the load's mark.
    async fn listed(
        &self,
        path: &str,
        name: &str,
        state: impl Fn(&Value) -> String,
    ) -> anyhow::Result<Vec<Found>> {
        let mark = format!("{}-", self.load.run);
        let found = self.list(path).await?.into_iter().map(|item| Found {
            name: text_of(&item, name),
            state: state(&item),
        });
        Ok(found
            .filter(|found| found.name.starts_with(&mark))
            .collect())
    }

    async fn tables(&self) -> anyhow::Result<Vec<Found>> {
        let mark = format!("load_{}_", self.load.run);
        let tables = self.get("/api/v1/tools/schema").await?;
        let tables = tables.as_array().cloned().unwrap_or_default();
        let found = tables.iter().map(|table| {
            let columns = table.get("columns").and_then(Value::as_array);
            let mut names: Vec<String> = columns
                .into_iter()
                .flatten()
                .map(|column| text_of(column, "name"))
                .filter(|name| name.len() == 1)
                .collect();
            names.sort();
            Found {
                name: text_of(table, "name"),
                state: names.join(","),
            }
        });
        Ok(found
            .filter(|found| found.name.starts_with(&mark))
            .collect())
    }

    /// Reads all rows of this load.
    pub(super) async fn read(&self, table: &str, columns: &[&str]) -> anyhow::Result<Vec<Value>> {
        let mut body = json!({
            "target_name": table,
            "target_type": "table",
            "filters": {"run": self.load.run},
            "columns": columns,
            "limit": PAGE,
        });
        let mut rows = Vec::new();
        loop {
            let response = self.post("/api/v1/tools/read", body.clone()).await?;
            if let Value::Array(page) = response.json() {
                rows.extend(page);
            }
            let next = response.next_page();
            let cursor = next.and_then(|url| {
                let mut pairs = url.query_pairs();
                pairs
                    .find(|(name, _)| name == "cursor")
                    .map(|(_, cursor)| cursor.into_owned())
            });
            let (Some(cursor), Some(fields)) = (cursor, body.as_object_mut()) else {
                return Ok(rows);
            };
            fields.insert("cursor".to_owned(), cursor.into());
        }
    }

    async fn rows(&self, table: &str) -> anyhow::Result<Vec<Found>> {
        let rows = self.read(table, &["name", "counter"]).await?;
        let found = rows.iter().map(|row| Found {
            name: text_of(row, "name"),
            state: row.get("counter").cloned().unwrap_or_default().to_string(),
        });
        Ok(found.collect())
    }

    async fn curves(&self) -> anyhow::Result<Vec<Found>> {
        let mut found: Vec<Found> = Vec::new();
        loop {
            let after = found.last().map_or("", |last| last.name.as_str());
            // The order of points counts from 0, so a lost or doubled point is seen.
            let query = format!(
                "SELECT s.name, count(*) || ' of ' || \
                   CASE WHEN min(c.value) = max(c.value) AND max(c.\"order\") = count(*) - 1 \
                   THEN min(c.value)::text ELSE 'several' END \
                 FROM load_sample AS s JOIN load_curve AS c ON c.sample_id = s.id \
                 WHERE s.run = $1 AND s.name > $2 \
                 GROUP BY s.name ORDER BY s.name LIMIT {CURVES}"
            );
            let body = json!({"query": query, "params": [self.load.run, after]});
            let response = self.post("/api/v1/tools/query", body).await?.json();
            let rows = response.get("data").and_then(Value::as_array).cloned();
            let rows = rows.unwrap_or_default();
            let is_last = rows.len() < CURVES;
            found.extend(rows.iter().map(|row| {
                let cell = |index: usize| {
                    let cell = row.get(index).and_then(Value::as_str);
                    cell.unwrap_or_default().to_owned()
                };
                Found {
                    name: cell(0),
                    state: cell(1),
                }
            }));
            if is_last {
                return Ok(found);
            }
        }
    }
}
