//! The command line.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::settings::Flags;

/// A laboratory's data platform: files, tables, measured curves and the scripts that make them.
#[derive(Debug, Parser)]
#[command(name = "labdata", version, arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the API and, in the same process, the background worker
    Serve(Serve),
    /// Run the main job step by step on a temporary data directory, then keep serving
    Demo(Demo),
    /// Run only the background worker, beside servers on the same database
    Worker(Common),
    /// Bring the database up to date
    Migrate(Common),
    /// Check settings, database, storage and everything else that the platform needs
    Doctor(Doctor),
    /// Copy database and files into a directory, while servers run
    Backup(Backup),
    /// Restore a copy into an empty data directory or database
    Restore(Restore),
    /// Import a file into a table of the platform that `LABDATA_BASE_URL` names, with `LABDATA_API_KEY`
    Import(Import),
    /// Manage API keys on this machine
    ApiKey(ApiKey),
    /// Check the log of who did what
    Audit(Audit),
    /// Print a link that signs a user in once, within 30 minutes
    SignIn(SignIn),
    /// Print the OpenAPI document
    Openapi,
    /// Supervise one script; started by the worker only
    #[command(hide = true)]
    RunSupervisor,
    /// Read the table of one file; started by a server only
    #[command(hide = true)]
    ReadTable,
}

/// Arguments of every command that has settings.
#[derive(Args, Debug)]
pub(super) struct Common {
    /// The settings file [default: labdata.toml in the working directory, if there is one]
    #[arg(long, value_name = "PATH")]
    pub(super) config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) flags: Flags,
}

#[derive(Args, Debug)]
pub(super) struct Doctor {
    /// Install the packages of the readers of files now (250 MB), before the first file needs them
    #[arg(long)]
    pub(super) prepare_readers: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Args, Debug)]
pub(super) struct Serve {
    /// Leave background work to `labdata worker` processes
    #[arg(long)]
    pub(super) no_worker: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Args, Debug)]
pub(super) struct Demo {
    /// A Gen5 kinetic export to use instead of the simulated one
    #[arg(long, value_name = "PATH")]
    pub(super) file: Option<PathBuf>,
    /// Exit after the last step; the exit status is 0 only if every step succeeded
    #[arg(long)]
    pub(super) exit: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Args, Debug)]
pub(super) struct Backup {
    /// The directory to make; one that exists must be empty
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
    /// Copy the files of a bucket, too, instead of only listing them
    #[arg(long)]
    pub(super) objects: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Args, Debug)]
pub(super) struct Restore {
    /// The directory of the copy
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Args, Debug)]
pub(super) struct Import {
    /// A delimited text, an Excel workbook (.xlsx) or Parquet
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// The table that gets the rows
    #[arg(value_name = "TABLE")]
    pub(super) table: String,
    /// insert creates every row, upsert updates those that match a stored one
    #[arg(long, default_value = "insert")]
    pub(super) mode: String,
    /// Column that identifies a stored row; repeated for several
    #[arg(long, value_name = "COLUMN")]
    pub(super) key: Vec<String>,
    /// Any other part of the form of the API, such as decimal=, or timezone=Europe/Berlin
    #[arg(short, long = "option", value_name = "NAME=VALUE")]
    pub(super) options: Vec<String>,
    /// Check everything and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print the response as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// URL of the platform [default: `LABDATA_BASE_URL`]
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct ApiKey {
    #[command(subcommand)]
    pub(super) command: ApiKeyCommand,
}

#[derive(Args, Debug)]
pub(super) struct Audit {
    #[command(subcommand)]
    pub(super) command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Check that no entry was changed or deleted; exit status 1 at the first that does not fit
    Verify(Common),
}

#[derive(Debug, Subcommand)]
pub(super) enum ApiKeyCommand {
    /// Create a key, and its organization and user when they are missing; prints it once
    Create(CreateKey),
    /// List every organization's keys
    List(ListKeys),
    /// Revoke a key; running servers refuse it within seconds
    Revoke(RevokeKey),
}

#[derive(Args, Debug)]
pub(super) struct CreateKey {
    /// The organization that the key gives access to
    #[arg(long, value_name = "NAME")]
    pub(super) organization: String,
    /// The user to whom it belongs
    #[arg(long, value_name = "EMAIL")]
    pub(super) user: String,
    /// Scopes of the key: any of read, write, admin
    #[arg(long, value_name = "SCOPE,…", required = true, value_delimiter = ',')]
    pub(super) scopes: Vec<String>,
    /// A name for people [default: the e-mail address]
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Days until the key expires [default: never]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub(super) expires_in_days: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Args, Debug)]
pub(super) struct ListKeys {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Args, Debug)]
pub(super) struct RevokeKey {
    /// The key's public part, the eight characters after `ldk_`
    pub(super) prefix: String,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Args, Debug)]
pub(super) struct SignIn {
    /// The user [default: the administrator of the first start]
    #[arg(long, value_name = "EMAIL")]
    pub(super) user: Option<String>,
    /// The organization [default: that of the first start]
    #[arg(long, value_name = "NAME")]
    pub(super) organization: Option<String>,
    #[command(flatten)]
    pub(super) common: Common,
}

impl Command {
    /// Log filter unless a setting gives one: `info` for servers, `warn` for commands that report to
    /// a person themselves.
    pub(super) fn default_log_filter(&self) -> &'static str {
        match self {
            Self::Serve(_) | Self::Worker(_) => "info",
            // Its lines say it all.
            Self::Doctor(_) => "error",
            _ => "warn",
        }
    }

    /// Sources of the command's settings besides the environment: a file and flags.
    pub(super) fn sources(&self) -> (Option<&Path>, &Flags) {
        static NONE: std::sync::LazyLock<Flags> = std::sync::LazyLock::new(Flags::default);
        let common = match self {
            Self::Serve(serve) => &serve.common,
            Self::Demo(demo) => &demo.common,
            Self::Worker(common) | Self::Migrate(common) => common,
            Self::Doctor(doctor) => &doctor.common,
            Self::SignIn(sign_in) => &sign_in.common,
            Self::Backup(backup) => &backup.common,
            Self::Restore(restore) => &restore.common,
            Self::Audit(audit) => match &audit.command {
                AuditCommand::Verify(common) => common,
            },
            Self::ApiKey(api_key) => match &api_key.command {
                ApiKeyCommand::Create(create) => &create.common,
                ApiKeyCommand::List(list) => &list.common,
                ApiKeyCommand::Revoke(revoke) => &revoke.common,
            },
            Self::Import(_) | Self::Openapi | Self::ReadTable | Self::RunSupervisor => {
                return (None, &NONE);
            }
        };
        (common.config.as_deref(), &common.flags)
    }
}
