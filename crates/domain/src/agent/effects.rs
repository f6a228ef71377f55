//! Effects of calls that reverting an execution does not undo, one sentence each.

use crate::data::write::WriteOutcome;

/// Effect of archiving a job.
pub const JOB_ARCHIVED: &str = "the job is archived: it runs no more until it is restored";

/// Effect of a new script of a job.
pub const SCRIPT_REPLACED: &str =
    "later runs of the job use the new script, also those that a trigger starts";

/// Effect of a run of a job.
pub const RUN_QUEUED: &str =
    "what the script does falls under the execution of that run, and is reverted there";

/// Effect of training a further version of a model.
pub const VERSION_REPLACED: &str = "the model predicts with this version as soon as it is ready";

/// Effect of cancelling trainings.
pub const TRAININGS_STOPPED: &str =
    "the trainings of this model were stopped; what they had learned is lost";

/// Returns the effects of a write, or those that it would have.
#[must_use]
pub fn write_effects(outcome: &WriteOutcome, is_dry_run: bool) -> Vec<String> {
    let verb = if is_dry_run { "would be" } else { "were" };
    let mut effects = Vec::new();
    for table in &outcome.tables {
        let (name, updated, deleted) = (&table.table, table.updated, table.deleted);
        if updated > 0 {
            effects.push(format!("{updated} rows of {name} {verb} changed"));
        }
        if deleted > 0 {
            effects.push(format!("{deleted} rows of {name} {verb} deleted"));
        }
        for (name, count) in table.cascade_deleted.iter().flatten() {
            effects.push(format!(
                "{count} rows or points of {name} {verb} deleted with them"
            ));
        }
    }
    let replaced = outcome
        .series
        .iter()
        .filter(|series| series.points_replaced > 0);
    effects.extend(replaced.map(|series| {
        let (name, points) = (&series.table, series.points_replaced);
        format!("{points} points of {name} {verb} replaced")
    }));
    effects
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::data::write::TableOutcome;

    #[test]
    fn only_what_a_revert_does_not_undo_is_an_effect() {
        let created = TableOutcome {
            table: "sample".to_owned(),
            created: 3,
            ..TableOutcome::default()
        };
        let changed = TableOutcome {
            updated: 2,
            deleted: 1,
            cascade_deleted: Some(BTreeMap::from([("curve".to_owned(), 40)])),
            ..created.clone()
        };
        let mut outcome = WriteOutcome {
            tables: vec![created],
            ..WriteOutcome::default()
        };
        assert_eq!(write_effects(&outcome, false), Vec::<String>::new());
        outcome.tables.push(changed);
        let expected = [
            "2 rows of sample would be changed",
            "1 rows of sample would be deleted",
            "40 rows or points of curve would be deleted with them",
        ];
        assert_eq!(write_effects(&outcome, true), expected);
        let done = expected.map(|effect| effect.replace("would be", "were"));
        assert_eq!(write_effects(&outcome, false), done);
    }
}
