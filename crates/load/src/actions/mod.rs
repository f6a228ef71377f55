//! Actions of the mix. Each sends one or a few requests and enters their effects in the ledger.

pub(crate) mod executions;
mod files;
mod reading;
mod resources;
mod rows;
mod work;

use crate::{action::Action, load::Connection, options::Options, random::Random};

/// Runs an action on that connection.
pub(crate) async fn run(action: Action, connection: &mut Connection) {
    match action {
        Action::Insert => rows::insert(connection).await,
        Action::Transaction => rows::transaction(connection).await,
        Action::Update => rows::update(connection).await,
        Action::Upsert => rows::upsert(connection).await,
        Action::Delete => rows::delete(connection).await,
        Action::Series => rows::series(connection).await,
        Action::Import => rows::import(connection).await,
        Action::Execution => executions::open_write_and_close(connection).await,
        Action::Revert => executions::revert(connection).await,
        Action::Read => reading::read(connection).await,
        Action::ReadSeries => reading::series(connection).await,
        Action::Query => reading::query(connection).await,
        Action::Export => reading::export(connection).await,
        Action::List => reading::lists(connection).await,
        Action::Upload => files::upload(connection).await,
        Action::SignedUpload => files::signed_upload(connection).await,
        Action::Download => files::download(connection).await,
        Action::DeleteFile => files::delete(connection).await,
        Action::Notification => resources::notification(connection).await,
        Action::ApiKey => resources::api_key(connection).await,
        Action::Table => resources::table(connection).await,
        Action::Job => resources::job(connection).await,
        Action::Dataset => resources::dataset(connection).await,
        Action::Run => work::run(connection).await,
        Action::Trigger => work::trigger(connection).await,
        Action::Agent => work::agent(connection).await,
        Action::Training => work::training(connection).await,
    }
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
