//! The ledger: for every object that the load touched, the states in which the platform may have it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Kind of object. Names are unique within a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    ApiKey,
    Curve,
    Dataset,
    File,
    Job,
    Model,
    Notification,
    Plate,
    Reading,
    Run,
    Sample,
    Table,
}

impl Kind {
    pub(crate) const ALL: [Self; 12] = [
        Self::ApiKey,
        Self::Curve,
        Self::Dataset,
        Self::File,
        Self::Job,
        Self::Model,
        Self::Notification,
        Self::Plate,
        Self::Reading,
        Self::Run,
        Self::Sample,
        Self::Table,
    ];
}

/// State of an object that exists, as far as it is checked.
pub(crate) type State = String;

/// An object that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) state: State,
}

/// Certainty of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    Acknowledged,
    Unknown,
}

/// States that an object may be in; `None` is its absence.
#[derive(Clone, Debug)]
struct Acceptable(Vec<Option<State>>);

impl Default for Acceptable {
    fn default() -> Self {
        Self(vec![None])
    }
}

impl Acceptable {
    fn change(&mut self, state: Option<State>, certainty: Certainty) {
        if certainty == Certainty::Acknowledged {
            self.0.clear();
        }
        self.0.push(state);
    }

    /// True if one request only could have created the object, and may not have done so.
    fn has_one_change(&self) -> bool {
        matches!(self.0.as_slice(), [None, Some(_)])
    }

    fn allows(&self, found: Option<&State>) -> bool {
        self.0.iter().any(|state| state.as_ref() == found)
    }
}

#[derive(Debug, Default)]
struct Entries {
    objects: HashMap<(Kind, String), Acceptable>,
    /// Objects of one transaction: all of a group exist, or none.
    groups: Vec<Vec<(Kind, String)>>,
    acknowledged: BTreeMap<Kind, u64>,
    unknown: BTreeMap<Kind, u64>,
    executions: HashMap<String, ExecutionEntries>,
}

/// Executions of a job that requests start and cannot name.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecutionEntries {
    /// Acknowledged ones, with the statuses that each may have.
    pub(crate) acknowledged: HashMap<String, Vec<&'static str>>,
    /// Number of requests that may have started another one.
    pub(crate) unknown: usize,
}

/// The ledger of a load.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Entries>);

impl Ledger {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a change of an object to a state, or to its absence.
    pub(crate) fn enter(
        &self,
        kind: Kind,
        name: impl Into<String>,
        state: Option<State>,
        certainty: Certainty,
    ) {
        let mut entries = self.entries();
        let counts = match certainty {
            Certainty::Acknowledged => &mut entries.acknowledged,
            Certainty::Unknown => &mut entries.unknown,
        };
        *counts.entry(kind).or_default() += 1;
        let object = entries.objects.entry((kind, name.into())).or_default();
        object.change(state, certainty);
    }

    /// Enters objects that one transaction creates.
    pub(crate) fn enter_group(&self, objects: Vec<(Kind, String, State)>, certainty: Certainty) {
        let mut group = Vec::new();
        for (kind, name, state) in objects {
            self.enter(kind, name.clone(), Some(state), certainty);
            group.push((kind, name));
        }
        if certainty == Certainty::Unknown {
            self.entries().groups.push(group);
        }
    }

    /// Enters an execution that a request under that job started.
    pub(crate) fn enter_execution(&self, job: &str, id: Option<String>, status: &'static str) {
        let mut entries = self.entries();
        let executions = entries.executions.entry(job.to_owned()).or_default();
        match id {
            Some(id) => {
                executions.acknowledged.insert(id, vec![status]);
            }
            None => executions.unknown += 1,
        }
    }

    /// Enters a change of an execution's status.
    pub(crate) fn end_execution(
        &self,
        job: &str,
        id: &str,
        status: &'static str,
        certainty: Certainty,
    ) {
        let mut entries = self.entries();
        let executions = entries.executions.entry(job.to_owned()).or_default();
        if let Some(statuses) = executions.acknowledged.get_mut(id) {
            if certainty == Certainty::Acknowledged {
                statuses.clear();
            }
            statuses.push(status);
        }
    }

    /// Executions under a job.
    pub(crate) fn executions(&self, job: &str) -> ExecutionEntries {
        let entries = self.entries();
        entries.executions.get(job).cloned().unwrap_or_default()
    }

    /// Number of acknowledged and of unknown changes by kind.
    pub(crate) fn counts(&self) -> BTreeMap<Kind, (u64, u64)> {
        let entries = self.entries();
        let count = |counts: &BTreeMap<Kind, u64>, kind| counts.get(&kind).copied().unwrap_or(0);
        Kind::ALL
            .into_iter()
            .map(|kind| {
                let counts = (
                    count(&entries.acknowledged, kind),
                    count(&entries.unknown, kind),
                );
                (kind, counts)
            })
            .filter(|(_, counts)| *counts != (0, 0))
            .collect()
    }

    /// Compares the objects of a kind that were found with those that may exist, and returns what is
    /// lost, doubled, or in a wrong state.
    pub(crate) fn compare(&self, kind: Kind, found: &[Found]) -> Vec<String> {
        let entries = self.entries();
        let mut problems = Vec::new();
        let mut states: HashMap<&str, Vec<&State>> = HashMap::new();
        for object in found {
            states.entry(&object.name).or_default().push(&object.state);
        }
        for (name, states) in &states {
            let acceptable = entries.objects.get(&(kind, (*name).to_owned()));
            match (states.as_slice(), acceptable) {
                (_, None) => problems.push(format!("{kind:?} {name}: not created by the load")),
                ([state], Some(acceptable)) => {
                    if !acceptable.allows(Some(state)) {
                        let expected = &acceptable.0;
                        problems.push(format!("{kind:?} {name}: {state:?} is not of {expected:?}"));
                    }
                }
                (many, Some(_)) => {
                    let count = many.len();
                    problems.push(format!("{kind:?} {name}: exists {count} times"));
                }
            }
        }
        for ((of, name), acceptable) in &entries.objects {
            let is_missing = *of == kind && !states.contains_key(name.as_str());
            if is_missing && !acceptable.allows(None) {
                problems.push(format!("{kind:?} {name}: lost, of {:?}", acceptable.0));
            }
        }
        problems
    }

    /// Returns the groups of which a part exists only. Objects that another request may have created, too, show nothing.
    pub(crate) fn torn_groups(&self, exists: impl Fn(Kind, &str) -> bool) -> Vec<String> {
        let entries = self.entries();
        let groups = entries.groups.iter();
        groups
            .filter(|group| {
                let own = group.iter().filter(|&object| {
                    let changes = entries.objects.get(object);
                    changes.is_some_and(Acceptable::has_one_change)
                });
                let existing: Vec<bool> = own.map(|(kind, name)| exists(*kind, name)).collect();
                existing.contains(&true) && existing.contains(&false)
            })
            .map(|group| format!("a part exists only: {group:?}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, state: &str) -> Found {
        Found {
            name: name.to_owned(),
            state: state.to_owned(),
        }
    }

    #[test]
    fn what_is_lost_doubled_strange_or_stale_is_a_problem() {
        let ledger = Ledger::default();
        let enter = |name: &str, state: Option<&str>, certainty| {
            ledger.enter(Kind::Sample, name, state.map(str::to_owned), certainty);
        };
        enter("a", Some("1"), Certainty::Acknowledged);
        enter("b", Some("1"), Certainty::Acknowledged);
        enter("b", Some("2"), Certainty::Unknown);
        enter("c", Some("1"), Certainty::Unknown);
        enter("d", Some("1"), Certainty::Acknowledged);
        enter("d", None, Certainty::Acknowledged);
        let compare = |objects: &[Found]| {
            let mut problems = ledger.compare(Kind::Sample, objects);
            problems.sort();
            problems
        };
        let (a, b, c) = (found("a", "1"), found("b", "2"), found("c", "1"));
        assert!(compare(&[a.clone(), b.clone(), c.clone()]).is_empty());
        assert!(compare(&[a.clone(), found("b", "1")]).is_empty());
        for (objects, problem) in [
            (vec![b.clone()], "a: lost"),
            (vec![a.clone()], "b: lost"),
            (vec![a.clone(), b.clone(), b.clone()], "exists 2 times"),
            (vec![a.clone(), b.clone(), found("d", "1")], "d: \"1\""),
            (vec![a.clone(), b.clone(), found("e", "1")], "not created"),
            (vec![a.clone(), found("b", "3")], "b: \"3\""),
        ] {
            let problems = compare(&objects);
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems.iter().all(|text| text.contains(problem)));
        }
    }

    #[test]
    fn a_part_of_a_transaction_is_a_problem() {
        let ledger = Ledger::default();
        let objects = ["a", "b"].map(|name| (Kind::Sample, name.to_owned(), "1".to_owned()));
        ledger.enter_group(objects.to_vec(), Certainty::Unknown);
        assert!(ledger.torn_groups(|_, _| true).is_empty());
        assert!(ledger.torn_groups(|_, _| false).is_empty());
        assert_eq!(ledger.torn_groups(|_, name| name == "a").len(), 1);
        // Another request has created it, so it is no part of this one.
        ledger.enter(
            Kind::Sample,
            "a",
            Some("1".to_owned()),
            Certainty::Acknowledged,
        );
        assert!(ledger.torn_groups(|_, name| name == "a").is_empty());
    }
}
