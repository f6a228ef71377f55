//! `labdata backup` and `labdata restore`

#[cfg(test)]
mod faults;
mod manifest;
mod objects;
mod restore;
mod write;

use anyhow::bail;

use self::write::Summary;
use super::{
    arguments::{Backup, Restore},
    output::{complain, say},
};
use crate::settings::Settings;

/// Number of missing objects that are named.
const NAMED: usize = 5;

/// Copies the platform of the settings while its servers run.
pub(super) async fn backup(settings: &Settings, arguments: &Backup) -> anyhow::Result<()> {
    let summary = write::backup(settings, &arguments.directory, arguments.objects).await?;
    let directory = arguments.directory.display();
    say(&format!("{directory}: {}", contents(&summary)));
    warn(&summary);
    // What was copied stays, and can be restored. A schedule must not take it for a whole platform.
    if !summary.missing.is_empty() {
        bail!(
            "the backup lacks {} objects that records name",
            summary.missing.len()
        );
    }
    Ok(())
}

/// Restores a backup into the empty platform of the settings.
pub(super) async fn restore(settings: &Settings, arguments: &Restore) -> anyhow::Result<()> {
    let summary = restore::restore(settings, &arguments.directory).await?;
    say(&format!(
        "restored: {}; `labdata serve` starts it",
        contents(&summary)
    ));
    warn(&summary);
    Ok(())
}

fn contents(summary: &Summary) -> String {
    let Summary {
        database_bytes,
        objects,
        object_bytes,
        storage,
        ..
    } = summary;
    let place = if summary.are_objects_included {
        String::new()
    } else {
        format!(" listed, which stay in {storage}")
    };
    format!("database of {database_bytes} bytes, {objects} objects of {object_bytes} bytes{place}")
}

fn warn(summary: &Summary) {
    let missing = &summary.missing;
    if missing.is_empty() {
        return;
    }
    let named = missing.get(..NAMED).unwrap_or(missing).join(", ");
    let more = if missing.len() > NAMED { ", …" } else { "" };
    complain(&format!(
        "warning: {} has not got {} objects that records name: {named}{more}",
        summary.storage,
        missing.len()
    ));
}
