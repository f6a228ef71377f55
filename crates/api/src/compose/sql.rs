//! PostgreSQL for people's tools: where it is served, and the relay in front of the embedded one.

use std::sync::Arc;

use anyhow::Context;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    outward::sql_logins::{SqlEndpoint, is_role_name, login_of_role},
};
use labdata_embedded_postgres::EmbeddedPostgres;
use labdata_limits::SharedSlots;
use labdata_ports::outward::sql_logins::SqlLoginRepository;
use labdata_postgres::server_address;
use labdata_postgres_relay::{
    Relay, Settings as RelaySettings, Share, TakeShare, TakenShare, acceptor,
};

use crate::settings::Settings;

/// Name of the embedded database.
const DATABASE: &str = "labdata";

/// Maximum number of clients of the relay: half of what the embedded PostgreSQL serves.
const CLIENTS: usize = 48;

/// Maximum number of clients of an organization; a user has half of it.
const CLIENTS_OF_ORGANIZATION: usize = CLIENTS / 2;

/// Shares of users and organizations in the clients, found by the roles of their logins.
fn shares(logins: Arc<dyn SqlLoginRepository>) -> TakeShare {
    let slots = Arc::new(SharedSlots::new(CLIENTS_OF_ORGANIZATION, CLIENTS));
    Arc::new(move |role: String| -> TakenShare {
        let (logins, slots) = (Arc::clone(&logins), Arc::clone(&slots));
        Box::pin(async move { take_share(&*logins, &slots, &role).await })
    })
}

async fn take_share(
    logins: &dyn SqlLoginRepository,
    slots: &SharedSlots<OrganizationId, UserId>,
    role: &str,
) -> Option<Share> {
    let owner = match login_of_role(role) {
        Some(login) => logins.owner(login).await,
        None => Ok(None),
    };
    match owner {
        Ok(Some((organization, user))) => {
            let slot = slots.try_enter(organization, user)?;
            Some(Box::new(slot))
        }
        // PostgreSQL refuses the login.
        Ok(None) => Some(Box::new(())),
        Err(error) => {
            tracing::warn!(%error, "the owner of a SQL login could not be found");
            None
        }
    }
}

/// Starts the relay in front of the embedded PostgreSQL, if it has an address.
///
/// # Errors
/// When the address is taken, or certificate and key cannot be used.
pub(super) async fn start_relay(
    settings: &Settings,
    embedded: Option<&EmbeddedPostgres>,
    logins: Arc<dyn SqlLoginRepository>,
) -> anyhow::Result<Option<Relay>> {
    let (Some(bind), Some(embedded)) = (settings.sql.bind, embedded) else {
        return Ok(None);
    };
    let files = settings.sql.certificate.as_ref();
    let tls = files.map(|(certificate, key)| acceptor(certificate, key));
    let relay = RelaySettings {
        socket: embedded.socket(),
        database: DATABASE.to_owned(),
        admits: is_role_name,
        tls: tls.transpose().context("LABDATA_SQL_CERTIFICATE")?,
        requires_tls: !bind.ip().is_loopback(),
        connections: CLIENTS,
        take_share: shares(logins),
    };
    let relay = Relay::start(bind, relay).await;
    let relay = relay.with_context(|| format!("cannot listen on {bind} (LABDATA_SQL_BIND)"))?;
    tracing::info!(address = %relay.address(), "SQL logins connect here");
    Ok(Some(relay))
}

/// Address for SQL logins; `None` if the server offers none.
pub(super) fn endpoint(settings: &Settings, relay: Option<&Relay>) -> Option<SqlEndpoint> {
    if let Some(relay) = relay {
        let address = relay.address();
        let ip = address.ip();
        return Some(SqlEndpoint {
            // An address of all networks is none to connect to.
            host: (!ip.is_unspecified()).then(|| ip.to_string()),
            port: address.port(),
            database: DATABASE.to_owned(),
            requires_tls: !ip.is_loopback(),
        });
    }
    let url = settings.database_url.as_ref()?;
    let server = server_address(url.reveal()).ok()?;
    Some(SqlEndpoint {
        host: server.host,
        port: server.port,
        database: server.database,
        requires_tls: server.requires_tls,
    })
}
