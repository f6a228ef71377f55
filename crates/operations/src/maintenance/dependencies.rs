//! `GET /api/v1/dependencies`

use labdata_application::maintenance::check_dependencies::DependencyReport;
use labdata_ports::maintenance::{Dependency, DependencyState};
use labdata_request_body::{Timestamp, names, output};

use crate::{About, Admin, Method, NoBody, Operation, Tag};

names! {
    /// Something that the platform depends on, as `labdata doctor` names it.
    pub DependencyName = Dependency::ALL.map(Dependency::as_str);

    /// State of a dependency: `ok`; `unused`, where it is not set up and need not be; or `failed`.
    pub DependencyStateName = DependencyState::ALL.map(DependencyState::as_str);
}

output! {
    /// A dependency and its state.
    #[derive(Debug)]
    pub struct DependencyView as "Dependency" from checked: (Dependency, DependencyState) {
        name: DependencyName = checked.0.as_str().into(),
        state: DependencyStateName = checked.1.as_str().into(),
    }
}

output! {
    /// States of everything that the server depends on.
    #[derive(Debug)]
    pub struct DependenciesView as "Dependencies" from report: DependencyReport {
        /// Time of the checks.
        checked_at: Timestamp = report.checked_at.into(),
        /// The dependencies, in the order in which to fix what fails.
        dependencies: Vec<DependencyView> = report.states.into_iter().map(Into::into).collect(),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "check_dependencies",
        method: Method::Get,
        path: "/api/v1/dependencies",
        tag: Tag::Operations,
        summary: "Checks what the server depends on",
        description: "The checks of `labdata doctor`, made by the server that responds; for a minute, it \
            returns the same response. Why a check failed is in the server's log, and `labdata doctor` \
            prints it with what to do. Takes up to a minute where something does not respond.",
        returns: "The states",
        refusals: &[],
    }
    // By hand, because the checks have a task of their own.
    .served_by_hand::<Admin, NoBody, (), (), DependenciesView>()
}
