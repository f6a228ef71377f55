//! Actions of the mix. Each sends one or a few requests and enters their effects in the ledger.

pub(crate) mod executions;
mod files;
mod reading;
mod resources;
mod rows;
mod work;

use crate::{load::Connection, options::Options, random::Random};

macro_rules! actions {
    ($($variant:ident = $name:literal * $weight:literal => $function:path;)*) => {
        /// An action of the mix.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Action {
            $($variant,)*
        }

        impl Action {
            /// All actions.
            pub(crate) const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];

            /// Name in `--mix`.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Default weight.
            const fn weight(self) -> u64 {
                match self {
                    $(Self::$variant => $weight,)*
                }
            }

            /// Does it.
            pub(crate) async fn run(self, connection: &mut Connection) {
                match self {
                    $(Self::$variant => $function(connection).await,)*
                }
            }
        }
    };
}

actions! {
    Insert = "insert" * 20 => rows::insert;
    Transaction = "transaction" * 6 => rows::transaction;
    Update = "update" * 8 => rows::update;
    Upsert = "upsert" * 6 => rows::upsert;
    Delete = "delete" * 3 => rows::delete;
    Series = "series" * 4 => rows::series;
    Import = "import" * 1 => rows::import;
    Execution = "execution" * 2 => executions::open_write_and_close;
    Revert = "revert" * 2 => executions::revert;
    Read = "read" * 10 => reading::read;
    ReadSeries = "read-series" * 4 => reading::series;
    Query = "query" * 6 => reading::query;
    Export = "export" * 1 => reading::export;
    List = "list" * 8 => reading::lists;
    Upload = "upload" * 5 => files::upload;
    SignedUpload = "signed-upload" * 4 => files::signed_upload;
    Download = "download" * 4 => files::download;
    DeleteFile = "delete-file" * 1 => files::delete;
    Notification = "notification" * 3 => resources::notification;
    ApiKey = "api-key" * 1 => resources::api_key;
    Table = "table" * 1 => resources::table;
    Job = "job" * 1 => resources::job;
    Dataset = "dataset" * 1 => resources::dataset;
    Run = "run" * 2 => work::run;
    Trigger = "trigger" * 2 => work::trigger;
    Agent = "agent" * 1 => work::agent;
    Training = "training" * 1 => work::training;
}

/// Actions with their weights.
#[derive(Clone, Debug)]
pub(crate) struct Mix(Vec<(Action, u64)>);

impl Mix {
    /// The mix that the options ask for.
    pub(crate) fn of(options: &Options) -> Self {
        let weight = |action: Action| {
            let chosen = options.mix.iter().rev();
            let chosen = chosen
                .filter(|weight| weight.action == action)
                .map(|weight| weight.weight);
            let is_off = match action {
                Action::Agent => !options.agent,
                Action::Training => !options.trainings,
                _ => false,
            };
            if is_off {
                0
            } else {
                chosen.take(1).next().unwrap_or(action.weight())
            }
        };
        Self(Action::ALL.map(|action| (action, weight(action))).into())
    }

    /// Draws an action; `None` if all weights are zero.
    pub(crate) fn draw(&self, random: &mut Random) -> Option<Action> {
        let total = self.0.iter().map(|(_, weight)| weight).sum();
        let mut drawn = random.below(total);
        for (action, weight) in &self.0 {
            if drawn < *weight {
                return Some(*action);
            }
            drawn -= weight;
        }
        None
    }
}
