//! Command line flags, one per setting in the list.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::list::SETTINGS;

/// Values given as flags, by key.
#[derive(Clone, Default)]
pub struct Flags(pub(super) BTreeMap<&'static str, String>);

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the values: some are secrets.
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        SETTINGS.iter().fold(command, |command, setting| {
            let (help, default, env) = (setting.help, setting.default, setting.env);
            command.arg(
                Arg::new(setting.key)
                    .long(setting.flag)
                    .value_name(setting.value)
                    .help(format!("{help} [default: {default}] [env: {env}]"))
                    .help_heading("Settings")
                    // Tokens and passwords may begin with a hyphen.
                    .allow_hyphen_values(true)
                    .global(false),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in SETTINGS {
            if let Some(value) = matches.get_one::<String>(setting.key) {
                self.0.insert(setting.key, value.clone());
            }
        }
        Ok(())
    }
}
