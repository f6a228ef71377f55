//! The program's commands.

mod api_key;
mod arguments;
mod audit;
mod backup;
mod demo;
mod demo_script;
mod doctor;
mod existing;
mod import;
mod logging;
mod output;
mod serve;
mod server;
mod sign_in;
mod signals;
mod worker;

use std::{process::ExitCode, time::Instant};

use clap::{Parser, error::ErrorKind};

use self::{
    arguments::{Arguments, Command},
    output::complain,
};
use crate::{
    compose::{self, DatabaseServer},
    private_files,
    settings::{Settings, SettingsError, unknown_variables},
};

pub(crate) use self::output::say;

/// Exit status for wrong arguments or settings.
const MISUSE: u8 = 2;

/// Reason why a command failed.
enum Failure {
    /// A setting is wrong.
    Settings(SettingsError),
    /// Any other error.
    Other(anyhow::Error),
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        // Adapters report wrong settings deep within a start; their exit status is that of a wrong call too.
        error.downcast().map_or_else(Self::Other, Self::Settings)
    }
}

/// Runs the command that this process's command line names.
#[must_use]
pub fn run() -> ExitCode {
    let started = Instant::now();
    // Before any file: the data directory, objects and backups hold everyone's data and secrets.
    private_files::by_default();
    // Before any thread: glibc applies the number of arenas to those that it creates later (ADR 35).
    labdata_heap::give_memory_back();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error),
    };
    if matches!(arguments.command, Command::RunSupervisor) {
        // The supervisor forks, so it must run before any thread is started.
        return compose::supervise();
    }
    if matches!(arguments.command, Command::ReadTable) {
        // A reader confines itself, so it must have one thread.
        return compose::read_table();
    }
    match execute(arguments.command, started) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Settings(error)) => {
            complain(&error.to_string());
            ExitCode::from(MISUSE)
        }
        Err(Failure::Other(error)) => {
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints help to standard output, and a wrong call as one line to standard error.
fn explain(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            say(error.render().to_string().trim_end());
            ExitCode::SUCCESS
        }
        // A missing command is a wrong call, though clap would print the help for it.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            complain("no command was given; `labdata --help` lists them");
            ExitCode::from(MISUSE)
        }
        _ => {
            let text = error.render().to_string();
            // Missing arguments are listed indented below the first line.
            let mut lines = text.lines();
            let first = lines
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            let missing: Vec<&str> = lines
                .take_while(|line| line.starts_with("  "))
                .map(str::trim)
                .collect();
            let separator = if missing.is_empty() { "" } else { " " };
            complain(&format!(
                "{first}{separator}{}; see --help",
                missing.join(", ")
            ));
            ExitCode::from(MISUSE)
        }
    }
}

fn execute(command: Command, started: Instant) -> Result<(), Failure> {
    // The document does not depend on settings, so wrong ones must not prevent it.
    if matches!(command, Command::Openapi) {
        return Ok(print_openapi()?);
    }
    // Nor does a client, which runs on machines without a platform.
    if let Command::Import(arguments) = command {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(anyhow::Error::from)?;
        return Ok(runtime.block_on(import::import(arguments))?);
    }
    let (config, flags) = command.sources();
    let settings = match &command {
        Command::Doctor(_) => doctor::settings(config, flags)
            .map_err(|_| anyhow::anyhow!("to be fixed first: settings"))?,
        _ => Settings::load(config, flags)?,
    };
    labdata_heap::give_memory_back_regularly();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)?;
    let export = {
        // The export of spans needs a runtime, but logging has to work before the first task runs.
        let _context = runtime.enter();
        logging::start(&settings.log, command.default_log_filter())?
    };
    if matches!(command, Command::Serve(_) | Command::Worker(_)) {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for name in unknown_variables(names) {
            tracing::warn!(
                name,
                "there is no setting of this name; `labdata serve --help` lists them"
            );
        }
    }
    let done = runtime.block_on(async {
        match command {
            // Handled before; the compiler does not know.
            Command::Import(_) | Command::Openapi | Command::ReadTable | Command::RunSupervisor => {
                print_openapi()
            }
            Command::Serve(arguments) => {
                serve::serve(&settings, arguments.no_worker, started).await
            }
            Command::Demo(arguments) => {
                // The future is large.
                Box::pin(demo::demo(settings, &arguments, started)).await
            }
            Command::Worker(_) => worker::worker(&settings).await,
            Command::Migrate(_) => migrate(&settings).await,
            Command::SignIn(arguments) => sign_in::sign_in(&settings, arguments).await,
            Command::Doctor(arguments) => doctor::doctor(&settings, &arguments).await,
            Command::Backup(arguments) => backup::backup(&settings, &arguments).await,
            Command::Restore(arguments) => backup::restore(&settings, &arguments).await,
            Command::Audit(_) => audit::verify(&settings).await,
            Command::ApiKey(arguments) => api_key::api_key(&settings, arguments.command).await,
        }
    });
    // After everything else: the last spans are those of the stop itself.
    export.close();
    Ok(done?)
}

fn print_openapi() -> anyhow::Result<()> {
    let document = crate::routes::openapi();
    say(&serde_json::to_string_pretty(&document)?);
    Ok(())
}

async fn migrate(settings: &Settings) -> anyhow::Result<()> {
    DatabaseServer::open(settings).await?.close().await?;
    say("the database is up to date");
    Ok(())
}
