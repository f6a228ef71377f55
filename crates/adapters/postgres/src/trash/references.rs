//! Targets of references in the trash, as entries store them.

use std::collections::BTreeMap;

use diesel::sql_types::{Jsonb, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{Column, TableIdentity},
    trash::ReferenceTargets,
};
use labdata_ports::PortError;
use serde_json::{Value, json};

use super::HeldRow;
use crate::database::{errors::port_error, sql::literal};

/// SQL of what an entry's content has of the targets.
pub(super) fn content(targets: &ReferenceTargets) -> String {
    let targets = targets.iter();
    let targets: BTreeMap<&str, String> = targets
        .map(|(column, target)| (column.as_str(), target.to_string()))
        .collect();
    let content = json!({ "targets": targets }).to_string();
    format!("{}::jsonb", literal(&content))
}

/// The targets that an entry's content has.
pub(super) fn targets(content: &Value) -> ReferenceTargets {
    let targets = content["targets"].as_object().into_iter().flatten();
    let targets = targets.filter_map(|(column, target)| {
        Some((column.clone(), TableIdentity::parse(target.as_str()?)))
    });
    targets.collect()
}

/// Gives the columns that an entry defines the targets of these.
pub(super) async fn follow<'c>(
    connection: &mut AsyncPgConnection,
    held: &HeldRow,
    columns: impl IntoIterator<Item = &'c Column>,
) -> Result<(), PortError> {
    let columns = columns.into_iter();
    let names: BTreeMap<&str, &Option<String>> = columns
        .map(|column| (column.name.as_str(), &column.references))
        .collect();
    let mut content = held.content.clone();
    let stored = content.get_mut("columns").and_then(Value::as_array_mut);
    for stored in stored.into_iter().flatten() {
        let name = stored["name"].as_str().unwrap_or_default();
        let Some(references) = names.get(name).copied() else {
            continue;
        };
        let references = json!(references);
        if let Some(stored) = stored.as_object_mut() {
            stored.insert("references_table".to_owned(), references);
        }
    }
    diesel::sql_query("UPDATE labdata.trash SET content = $2 WHERE id = $1")
        .bind::<SqlUuid, _>(held.id)
        .bind::<Jsonb, _>(content)
        .execute(connection)
        .await
        .map_err(port_error)?;
    Ok(())
}
