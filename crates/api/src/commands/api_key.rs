//! `labdata api-key`

use anyhow::{Context, bail};
use labdata_application::{
    Services,
    people::operator_keys::{self, IssueKey},
};
use labdata_domain::{
    people::{
        ApiKey,
        scope::{Scope, Scopes},
        tenancy::Organization,
    },
    timestamp,
    work::{BackendPolicy, WorkKind},
};
use serde_json::{Value, json};
use time::Duration;

use super::{
    arguments::{ApiKeyCommand, CreateKey},
    existing::require_database,
    output::{complain, say},
};
use crate::{
    compose::{DatabaseServer, backend_policy},
    dependencies::ServerDependencies,
    settings::Settings,
};

/// Runs one of the commands on the configured database, which a server may be using.
pub(super) async fn api_key(settings: &Settings, command: ApiKeyCommand) -> anyhow::Result<()> {
    // Checked first: a wrong call must not start a database.
    match &command {
        ApiKeyCommand::Create(arguments) => {
            scopes(&arguments.scopes)?;
        }
        ApiKeyCommand::List(_) => require_database(settings, "to list")?,
        ApiKeyCommand::Revoke(_) => require_database(settings, "to revoke")?,
    }
    let database = DatabaseServer::open(settings).await?;
    let outcome = run(&database, settings, command).await;
    // Also after a failure, so that an embedded PostgreSQL does not run on.
    database.close().await?;
    say(&outcome?);
    Ok(())
}

async fn run(
    database: &DatabaseServer,
    settings: &Settings,
    command: ApiKeyCommand,
) -> anyhow::Result<String> {
    let services = database
        .services(
            settings,
            &settings.public_url(settings.bind),
            ServerDependencies::of(settings),
        )
        .await?;
    match command {
        ApiKeyCommand::Create(arguments) => {
            create(
                &services,
                backend_policy(settings, WorkKind::Run),
                arguments,
            )
            .await
        }
        ApiKeyCommand::List(arguments) => {
            let keys = operator_keys::list(&services).await?;
            Ok(if arguments.json {
                as_json(&keys)?
            } else {
                as_table(&keys)
            })
        }
        ApiKeyCommand::Revoke(arguments) => {
            let prefix = arguments.prefix.trim().trim_start_matches("ldk_");
            // Accepts the whole key as well, which is what people have at hand.
            let prefix = prefix.get(..8).unwrap_or(prefix);
            operator_keys::revoke(&services, prefix)
                .await
                .with_context(|| format!("no key with the prefix {prefix:?} was revoked"))?;
            Ok(format!("revoked {prefix}"))
        }
    }
}

async fn create(
    services: &Services,
    policy: BackendPolicy,
    arguments: CreateKey,
) -> anyhow::Result<String> {
    let days = arguments
        .expires_in_days
        .map(|days| Duration::days(days.into()));
    let command = IssueKey {
        name: arguments.name.unwrap_or_else(|| arguments.user.clone()),
        scopes: scopes(&arguments.scopes)?,
        lifetime: days,
    };
    let (organization, user) = (&arguments.organization, &arguments.user);
    let issued = operator_keys::issue(services, policy, organization, user, command).await?;
    let (key, plain) = (issued.key, issued.plain);
    // Beside the key, which scripts read from the standard output. A misspelled name makes an empty organization.
    if issued.created_organization {
        complain(&format!(
            "the organization {:?} did not exist and was created",
            organization.trim()
        ));
    }
    if issued.created_user {
        complain(&format!(
            "the user {} did not exist and was created",
            user.trim()
        ));
    }
    if let Some(role) = issued.raised_to {
        complain(&format!(
            "{user} has the role {role} from now on, which these scopes need"
        ));
    }
    if !arguments.json {
        return Ok(plain.reveal().to_owned());
    }
    let mut displayed = view(organization.trim(), &key);
    if let Some(fields) = displayed.as_object_mut() {
        fields.insert("key".to_owned(), plain.reveal().into());
    }
    Ok(serde_json::to_string_pretty(&displayed)?)
}

fn scopes(names: &[String]) -> anyhow::Result<Scopes> {
    let scopes: Option<Scopes> = names
        .iter()
        .map(|name| Scope::from_name(name.trim()))
        .collect();
    match scopes {
        Some(scopes) if !scopes.is_empty() => Ok(scopes),
        _ => bail!(
            "--scopes is {:?}; it takes any of read, write, admin",
            names.join(",")
        ),
    }
}

fn scope_names(key: &ApiKey) -> Vec<&'static str> {
    key.scopes.iter().map(Scope::as_str).collect()
}

fn view(organization: &str, key: &ApiKey) -> Value {
    json!({
        "id": key.id,
        "organization": organization,
        "name": key.name,
        "prefix": key.prefix,
        "scopes": scope_names(key),
        "created_at": timestamp::render(key.created_at),
        "expires_at": key.expires_at.map(timestamp::render),
        "last_used_at": key.last_used_at.map(timestamp::render),
        "revoked_at": key.revoked_at.map(timestamp::render),
    })
}

fn as_json(keys: &[(Organization, ApiKey)]) -> anyhow::Result<String> {
    let keys: Vec<Value> = keys
        .iter()
        .map(|(owner, key)| view(&owner.name, key))
        .collect();
    Ok(serde_json::to_string_pretty(&keys)?)
}

fn as_table(keys: &[(Organization, ApiKey)]) -> String {
    let mut lines = vec![format!(
        "{:<8}  {:<20}  {:<16}  {:<20}  {:<10}  NAME",
        "PREFIX", "ORGANIZATION", "SCOPES", "CREATED", "STATE"
    )];
    for (organization, key) in keys {
        let state = match (key.revoked_at, key.expires_at) {
            (Some(_), _) => "revoked".to_owned(),
            (None, Some(end)) => format!("until {}", timestamp::render_date(end.date())),
            (None, None) => "active".to_owned(),
        };
        lines.push(format!(
            "{:<8}  {:<20}  {:<16}  {:<20}  {:<10}  {}",
            key.prefix,
            organization.name,
            scope_names(key).join(","),
            timestamp::render(
                key.created_at
                    .replace_nanosecond(0)
                    .unwrap_or(key.created_at)
            ),
            state,
            // Names come from API clients and could send escape sequences to the operator's terminal.
            key.name.replace(char::is_control, " "),
        ));
    }
    lines.join("\n")
}
