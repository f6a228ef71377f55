//! Changes of the audit log that PostgreSQL refuses.

use labdata_domain::{
    audit::{AuditAction, AuditFilter, AuditTarget, AuditTargetKind, NewAuditEntry},
    ids::AuditEntryId,
};
use labdata_port_contracts::{Harness as _, Subject, fixtures::Tenants as _, given};
use labdata_ports::audit::AuditLog;
use serde_json::Map;
use time::OffsetDateTime;

use crate::{contracts::Postgres, look_behind};

#[tokio::test]
async fn the_database_refuses_to_change_or_delete_an_entry() {
    let harness = Postgres::fresh().await;
    let organization = harness.organization("lab").await.id;
    let audit = Subject::<dyn AuditLog>::subject(&harness);
    let entry = NewAuditEntry {
        id: AuditEntryId::new(given::uuid()),
        at: OffsetDateTime::UNIX_EPOCH,
        action: AuditAction::TableDropped,
        user: None,
        api_key: None,
        target: AuditTarget::named(AuditTargetKind::Table, "sample"),
        details: Map::new(),
    };
    audit.append(organization, entry).await.unwrap();
    let client = look_behind(harness.url()).await;
    for statement in [
        "UPDATE labdata.audit_entry SET target_name = 'other'",
        "DELETE FROM labdata.audit_entry",
        "DELETE FROM labdata.audit_entry WHERE false",
        "TRUNCATE labdata.audit_entry",
    ] {
        let refused = client.batch_execute(statement).await.unwrap_err();
        let message = format!("{refused:?}");
        assert!(
            message.contains("neither changed nor deleted"),
            "{statement}: {message}"
        );
    }
    let all = AuditFilter::default();
    let stored = audit
        .list_after(organization, &all, None, 10)
        .await
        .unwrap();
    assert_eq!(stored.len(), 1);
}
