//! The organization, its servers, and disturbances of these.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use labdata_application::{
    Services,
    catalog::define_table::define_table,
    data::write_data::WriteData,
    jobs::{
        check_script::CheckedScript,
        create_job::{CreateJob, create_job},
    },
};
use labdata_domain::{
    catalog::{ColumnDefinition, TableDefinition},
    data::write::{Mode, Rows, TableWrite, WriteRequest, cell::Cell},
    ids::{ApiKeyId, JobId},
    people::{
        actor::Actor,
        rights::Rights,
        role::Role,
        scope::Scope,
        tenancy::{Organization, User},
    },
    scalar::DataType,
    triggers::TriggerChange,
};
use serde_json::Value;

use super::{
    BUSY, Plant,
    ledger::Ledger,
    servers::{Server, Store},
    time::Simulation,
};

/// Number of servers. The first one runs the agent, and is never disturbed but by its clock.
const SERVERS: usize = 3;

/// One simulated organization.
pub(super) struct Lab {
    pub(super) simulation: Simulation,
    pub(super) plant: Plant,
    pub(super) store: Store,
    pub(super) servers: Vec<(Server, Services)>,
    pub(super) ledger: Ledger,
    pub(super) actor: Actor,
    pub(super) job: JobId,
    names: AtomicU64,
}

impl Lab {
    pub(super) fn new(simulation: &Simulation, plant: Plant) -> Self {
        let store = Store::new(simulation);
        let observer = store.observer();
        // The check of a script runs on another thread.
        let (actor, job) = futures::executor::block_on(begin(&observer));
        let servers = (0..SERVERS).map(|number| {
            let server = Server::new(number, simulation);
            let services = store.services(&server, plant);
            (server, services)
        });
        Self {
            simulation: simulation.clone(),
            plant,
            servers: servers.collect(),
            ledger: Ledger::new(simulation, actor.organization, observer),
            store,
            actor,
            job,
            names: AtomicU64::new(0),
        }
    }

    /// True while people act.
    pub(super) fn is_busy(&self) -> bool {
        self.simulation.now() < BUSY
    }

    /// One of the servers.
    pub(super) fn server(&self) -> &(Server, Services) {
        self.simulation.pick(&self.servers).unwrap()
    }

    /// A write of a row, or of a row that references another one.
    pub(super) fn write(&self) -> WriteData {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        let sample = row("sample", "name", format!("sample {number}").into());
        let mut tables = vec![sample];
        if number > 0 && self.simulation.one_in(3) {
            let earlier = format!("sample {}", self.simulation.below(number));
            let reference = serde_json::json!({ "name": earlier });
            tables.push(row("aliquot", "sample", reference));
        }
        written(tables)
    }

    /// A delete of a row.
    pub(super) fn delete(&self) -> WriteData {
        let end = self.names.load(Ordering::Relaxed).max(1);
        let name = format!("sample {}", self.simulation.below(end));
        written(vec![TableWrite {
            mode: Mode::Delete,
            key: Some(vec!["name".to_owned()]),
            cascade: self.simulation.one_in(2),
            ..row("sample", "name", name.into())
        }])
    }
}

fn written(tables: Vec<TableWrite>) -> WriteData {
    WriteData {
        request: WriteRequest {
            tables,
            ..WriteRequest::default()
        },
        ..WriteData::default()
    }
}

fn row(table: &str, column: &str, value: Value) -> TableWrite {
    let mut rows = Rows::default();
    rows.begin_row();
    rows.set(0, column, Cell::from(value));
    TableWrite {
        table: table.to_owned(),
        rows,
        ..TableWrite::default()
    }
}

/// The definition of samples, with further columns.
pub(super) fn sample(further: u64) -> TableDefinition {
    let name = ColumnDefinition {
        is_nullable: false,
        is_unique: true,
        ..ColumnDefinition::new("name", DataType::String)
    };
    let further = (0..further)
        .map(|number| ColumnDefinition::new(format!("further_{number}"), DataType::Float));
    TableDefinition::new("sample", std::iter::once(name).chain(further).collect())
}

/// Makes an organization with tables and a job.
async fn begin(services: &Services) -> (Actor, JobId) {
    let organization = Organization {
        id: services.ids.next_id().into(),
        name: "lab".to_owned(),
        created_at: services.clock.now(),
    };
    let user = User {
        id: services.ids.next_id().into(),
        organization: organization.id,
        email: "ada@example.org".to_owned(),
        name: "Ada".to_owned(),
        role: Role::Admin,
        groups: Vec::new(),
        created_at: services.clock.now(),
        disabled_at: None,
    };
    services
        .tenancy
        .ensure_organization(&organization)
        .await
        .unwrap();
    services.tenancy.ensure_user(&user).await.unwrap();
    let actor = Actor {
        organization: organization.id,
        user: user.id,
        api_key: ApiKeyId::new(services.ids.next_id()),
        scopes: Scope::ALL.into_iter().collect(),
        rights: Rights::admin(),
        execution: None,
    };
    let aliquot = ColumnDefinition {
        references: Some("sample".to_owned()),
        ..ColumnDefinition::new("sample", DataType::String)
    };
    for definition in [sample(0), TableDefinition::new("aliquot", vec![aliquot])] {
        define_table(services, &actor, &definition).await.unwrap();
    }
    let job = CreateJob {
        name: "script".to_owned(),
        script: CheckedScript::check("print()").await,
        description: None,
        parameters: Vec::new(),
        trigger: TriggerChange::default(),
    };
    let job = create_job(services, &actor, job).await.unwrap();
    (actor, job.id)
}

/// Suspends servers, cuts them off and steps their clocks, one disturbance after the other.
pub(super) async fn disturb(lab: Arc<Lab>) {
    let simulation = &lab.simulation;
    while lab.is_busy() {
        simulation.sleep(simulation.seconds(2, 15)).await;
        let (server, _) = lab.server();
        let number = server.number;
        let time = simulation.seconds(1, 50);
        match simulation.below(3) {
            0 if number > 0 => {
                simulation.trace(format!("server {number} is paused for {time}"));
                server.pause(time);
            }
            1 if number > 0 => {
                simulation.trace(format!("server {number} is cut off for {time}"));
                // A worker measures its lease by its own clock while it is cut off.
                server.cut_off(time);
            }
            _ if server.is_cut_off() => {}
            _ => {
                let step = simulation.seconds(0, 240) - ::time::Duration::minutes(2);
                simulation.trace(format!("the clock of server {number} steps by {step}"));
                server.step_clock(step);
            }
        }
    }
    for (server, _) in &lab.servers {
        server.set_clock_right();
    }
}
