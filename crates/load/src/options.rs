//! Command-line options.

use std::{str::FromStr, time::Duration};

use clap::Parser;

use crate::action::Action;

/// Produces a mixed load, and checks at the end that every acknowledged write is there exactly once.
#[derive(Clone, Debug, Parser)]
#[command(name = "labdata-load", version)]
pub struct Options {
    /// Base URL of a server; repeat it for several, which take turns
    #[arg(
        long = "url",
        env = "LABDATA_BASE_URL",
        value_delimiter = ',',
        required = true
    )]
    pub urls: Vec<String>,
    /// API key with the scopes read, write and admin, of an organization for tests
    #[arg(long, env = "LABDATA_API_KEY", hide_env_values = true)]
    pub key: String,
    /// Clients that send one request at a time
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// Duration of the load in seconds
    #[arg(long = "seconds", value_parser = seconds, default_value = "60")]
    pub duration: Duration,
    /// Number that determines the order of actions and all values
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Weights of actions, such as insert=10,query=0; those left out keep their default
    #[arg(long, value_delimiter = ',')]
    pub mix: Vec<Weight>,
    /// Time in seconds for which a request is retried when its connection is lost or a server is
    /// unavailable
    #[arg(long = "retry-seconds", value_parser = seconds, default_value = "60")]
    pub retry: Duration,
    /// Time in seconds within which runs and triggers must end after the load
    #[arg(long = "settle-seconds", value_parser = seconds, default_value = "180")]
    pub settle: Duration,
    /// Process id of a server on this machine whose memory is reported (Linux); repeat it for several
    #[arg(long = "pid")]
    pub pids: Vec<u32>,
    /// Run the agent; the servers need a language model or a stand-in (`just agent-stub`)
    #[arg(long)]
    pub agent: bool,
    /// Train models; the servers need a training backend
    #[arg(long)]
    pub trainings: bool,
}

/// Weight of an action in the mix.
#[derive(Clone, Copy, Debug)]
pub struct Weight {
    pub(crate) action: Action,
    pub(crate) weight: u64,
}

impl FromStr for Weight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, weight) = text
            .split_once('=')
            .ok_or_else(|| format!("{text} is not ACTION=WEIGHT"))?;
        let action = Action::ALL
            .into_iter()
            .find(|action| action.name() == name)
            .ok_or_else(|| {
                let names: Vec<_> = Action::ALL.iter().map(|action| action.name()).collect();
                format!("{name} is not an action: {}", names.join(", "))
            })?;
        let weight = weight
            .parse()
            .map_err(|_| format!("{weight} is not a weight"))?;
        Ok(Self { action, weight })
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| format!("{text} is no number"))?;
    Ok(Duration::from_secs(seconds))
}
