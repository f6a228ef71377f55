//! `labdata audit`

use anyhow::bail;
use labdata_application::audit::verify_audit::verify_audit;

use super::{existing::require_database, output::say};
use crate::{compose::DatabaseServer, dependencies::ServerDependencies, settings::Settings};

/// Checks the audit logs in the configured database, which a server may be using.
pub(super) async fn verify(settings: &Settings) -> anyhow::Result<()> {
    require_database(settings, "to check")?;
    let database = DatabaseServer::open(settings).await?;
    let outcome = verified(&database, settings).await;
    // Also after a failure, so that an embedded PostgreSQL does not run on.
    database.close().await?;
    outcome
}

async fn verified(database: &DatabaseServer, settings: &Settings) -> anyhow::Result<()> {
    let url = settings.public_url(settings.bind);
    let services = database
        .services(settings, &url, ServerDependencies::of(settings))
        .await?;
    let logs = verify_audit(&services).await?;
    if logs.is_empty() {
        say("there is no organization yet, and no entry to check");
    }
    for log in logs {
        let name = log.organization.name;
        match log.entries {
            Ok(entries) => say(&format!("{name}: {entries} entries, each fits")),
            Err(broken) => bail!("organization {name:?}: {broken}"),
        }
    }
    Ok(())
}
