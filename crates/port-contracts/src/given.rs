//! Times, ids and entities for clauses.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
};

use labdata_domain::{
    catalog::TableIdentity,
    executions::{Execution, ExecutionState, Origin},
    files::ObjectKey,
    ids::{
        ApiKeyId, DatasetId, ExecutionId, GroupId, InstrumentId, JobId, OrganizationId, TriggerId,
        UserId,
    },
    instruments::Instrument,
    jobs::{Job, ParameterDefinition, PublishStatus, ScriptVersion, Widget},
    models::{ColumnProfile, Dataset, DatasetColumn, DatasetSource},
    people::{
        ApiKey, PlainApiKey,
        group::Group,
        role::Role,
        scope::Scopes,
        tenancy::{Organization, User},
    },
    scalar::DataType,
    triggers::{Category, Trigger},
};
use serde_json::{Number, Value};
use time::{Duration, OffsetDateTime, macros::datetime};
use uuid::Uuid;

/// Start time of every clause.
pub const START: OffsetDateTime = datetime!(2026-01-01 00:00:00 UTC);

/// Returns [`START`] plus `seconds` and some microseconds, which adapters must store.
#[must_use]
pub fn at(seconds: i64) -> OffsetDateTime {
    START + Duration::seconds(seconds) + Duration::microseconds(123_456)
}

/// A number that no other call in this process got.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A new UUID v7, greater than all before it.
#[must_use]
pub fn uuid() -> Uuid {
    let mut random = [0; 10];
    let (_, last) = random.split_at_mut(2);
    last.copy_from_slice(&unique().to_be_bytes());
    uuid::Builder::from_unix_timestamp_millis(1_767_225_600_000, &random).into_uuid()
}

/// An organization that is not stored yet.
#[must_use]
pub fn organization(name: &str) -> Organization {
    Organization {
        id: OrganizationId::new(uuid()),
        name: name.to_owned(),
        created_at: at(0),
    }
}

/// A user that is not stored yet.
#[must_use]
pub fn user(organization: OrganizationId, email: &str) -> User {
    User {
        id: UserId::new(uuid()),
        organization,
        email: email.to_owned(),
        name: format!("The person behind {email}"),
        role: Role::Admin,
        groups: Vec::new(),
        created_at: at(0),
        disabled_at: None,
    }
}

/// A group that is not stored yet.
#[must_use]
pub fn group(organization: OrganizationId, name: &str, members: &[UserId]) -> Group {
    Group {
        id: GroupId::new(uuid()),
        organization,
        name: name.to_owned(),
        members: members.to_vec(),
        created_at: at(0),
    }
}

/// Makes a key, not stored yet, with a unique prefix and no limits.
#[must_use]
pub fn api_key(user: &User) -> ApiKey {
    let number = unique();
    let [_, _, _, prefix @ ..] = number.to_be_bytes();
    let mut secret = [0; 32];
    let (head, _) = secret.split_at_mut(8);
    head.copy_from_slice(&number.to_be_bytes());
    let plain = PlainApiKey::from_random(prefix, secret);
    ApiKey {
        id: ApiKeyId::new(uuid()),
        organization: user.organization,
        user: user.id,
        name: format!("key {number}"),
        prefix: plain.prefix().to_owned(),
        hash: plain.hash(),
        scopes: Scopes::all(),
        tables: None,
        execution: None,
        created_at: at(0),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    }
}

/// A dataset that is not stored yet, with a column of every type.
#[must_use]
pub fn dataset(name: &str, created_by: UserId, created_at: OffsetDateTime) -> Dataset {
    let columns = DataType::ALL.into_iter().zip(0..);
    Dataset {
        id: DatasetId::new(uuid()),
        name: name.to_owned(),
        description: Some("Weine, \"rot\" und weiß".to_owned()),
        columns: columns
            .map(|(data_type, number)| DatasetColumn {
                name: format!("column of {data_type}"),
                data_type,
                profile: ColumnProfile {
                    nulls: number,
                    distinct: (number % 2 == 0).then_some(number),
                },
            })
            .collect(),
        row_count: 178,
        source: DatasetSource::Query("SELECT * FROM wine".to_owned()),
        tables: BTreeSet::from([
            TableIdentity::Organization(12),
            TableIdentity::Core("experiment".to_owned()),
        ]),
        object: ObjectKey::new(uuid()),
        size: 12_345,
        created_by,
        created_at,
    }
}

/// An instrument that is not stored yet.
#[must_use]
pub fn instrument(name: &str, created_at: OffsetDateTime) -> Instrument {
    Instrument {
        id: InstrumentId::new(uuid()),
        name: name.to_owned(),
        description: Some(format!("What {name} is for")),
        instrument_type: Some("plate_reader".to_owned()),
        reader: Some("auto".to_owned()),
        timezone: Some("Europe/Berlin".to_owned()),
        last_reader: Some("AGILENT_GEN5".to_owned()),
        created_at,
    }
}

/// A job that is not stored yet.
#[must_use]
pub fn job(name: &str, created_at: OffsetDateTime) -> Job {
    Job {
        id: JobId::new(uuid()),
        name: name.to_owned(),
        archived: false,
        description: Some(format!("What {name} does")),
        created_at,
        version_number: None,
        publish_status: PublishStatus::Draft,
        published_version: None,
        parameters: Vec::new(),
        trigger: None,
        revision: 1,
    }
}

/// Definitions of parameters that fill every field, and leave out every field that they may.
#[must_use]
pub fn parameters() -> Vec<ParameterDefinition> {
    let full = ParameterDefinition {
        widget_type: Widget::Slider,
        parameter_name: "Schwelle \"OD\"".to_owned(),
        label: Some("Threshold".to_owned()),
        model_source: Some("sample".to_owned()),
        min: Some(0.into()),
        max: Number::from_f64(2.5),
        step: Number::from_f64(0.125),
        file_id: Some(uuid().to_string()),
        file_id_parameter: Some("image".to_owned()),
        required: true,
        default: Some(Number::from_f64(0.1).into()),
    };
    let bare = ParameterDefinition {
        widget_type: Widget::Text,
        parameter_name: "image".to_owned(),
        label: None,
        model_source: None,
        min: None,
        max: None,
        step: None,
        file_id: None,
        file_id_parameter: None,
        required: false,
        default: None,
    };
    vec![full, bare]
}

/// A trigger that is not stored yet, armed when every clause begins.
#[must_use]
pub fn trigger(category: Category, conditions: Value, set_by: UserId) -> Trigger {
    let Value::Object(conditions) = conditions else {
        panic!("conditions are an object");
    };
    Trigger {
        id: TriggerId::new(uuid()),
        category,
        instrument: None,
        conditions,
        set_by,
        armed_at: at(0),
    }
}

/// A version of a script that is not stored yet.
#[must_use]
pub fn script(number: u32, code: &str, created_by: UserId) -> ScriptVersion {
    ScriptVersion {
        number,
        code: code.to_owned(),
        created_at: at(i64::from(number)),
        created_by,
    }
}

/// An execution that is not stored yet and starts now, of an off-platform script.
#[must_use]
pub fn execution(job: &Job, now: OffsetDateTime, timeout_minutes: Option<u32>) -> Execution {
    Execution {
        id: ExecutionId::new(uuid()),
        job_id: job.id,
        job_name: job.name.clone(),
        origin: Origin::OffPlatform,
        state: ExecutionState::start(now, timeout_minutes),
        created_at: now,
        started_at: Some(now),
    }
}
