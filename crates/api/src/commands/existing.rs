//! Commands for a platform that exists.

use anyhow::bail;

use crate::settings::Settings;

/// Refuses a data directory without a database, which opening it would make. `purpose` is what there is nothing for.
///
/// # Errors
/// The refusal, for the operator.
pub(super) fn require_database(settings: &Settings, purpose: &str) -> anyhow::Result<()> {
    let is_here =
        settings.database_url.is_some() || settings.data_dir.join("postgres/PG_VERSION").exists();
    if !is_here {
        bail!(
            "there is nothing {purpose}: {} has no database; set LABDATA_DATA_DIR or DATABASE_URL to that of the server",
            settings.data_dir.display()
        );
    }
    Ok(())
}
