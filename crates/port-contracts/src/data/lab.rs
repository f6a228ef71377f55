//! An organization that defines, writes and reads tables through the ports, as the use cases do.

use std::sync::Arc;

use labdata_domain::{
    catalog::{Catalog, Table, TableDefinition, ViolatedKey, Violation},
    data::{
        changes::ExecutionChanges,
        read::{
            ReadPlan, ReadTarget, RowPage, RowSelection, SeriesColumns, SeriesLimits, SeriesPlan,
        },
        revert::RevertReport,
        write::{
            LABEL_KEY, Mode, Problem, Rows, SeriesValues, SeriesWrite, TableWrite, WriteOutcome,
            WritePlan, WriteRequest, cell::Cell, check,
        },
    },
    executions::Execution,
    ids::{ApiKeyId, ExecutionId, JobId, OrganizationId, UserId},
    jobs::JobName,
    people::{rights::Rights, visible_tables::VisibleTables},
};
use labdata_ports::{
    catalog::{CatalogStore, DefineError},
    data::{
        Attribution, DataStore, ReadSeriesError, RevertError, RevertRequest, SourceFile,
        WriteError, WriteTarget,
    },
    executions::ExecutionRepository,
    jobs::JobRepository,
    people::{ApiKeyRepository, tenancy::TenancyRepository},
};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::{
    Subject,
    catalog::definitions,
    fixtures::{ApiKeys, Tenants},
    given::{self, at},
};

/// A harness over a store with tables and everything that writes depend on.
pub trait DataHarness:
    Subject<dyn TenancyRepository>
    + Subject<dyn ApiKeyRepository>
    + Subject<dyn JobRepository>
    + Subject<dyn ExecutionRepository>
    + Subject<dyn CatalogStore>
    + Subject<dyn DataStore>
{
}

impl<H> DataHarness for H where
    H: Subject<dyn TenancyRepository>
        + Subject<dyn ApiKeyRepository>
        + Subject<dyn JobRepository>
        + Subject<dyn ExecutionRepository>
        + Subject<dyn CatalogStore>
        + Subject<dyn DataStore>
{
}

/// Default time of a lab's writes.
#[must_use]
pub fn writing_time() -> OffsetDateTime {
    at(100)
}

/// An organization with a person and a key.
pub struct Lab {
    /// The organization.
    pub organization: OrganizationId,
    /// The person who writes.
    pub user: UserId,
    /// The key that is used.
    pub api_key: ApiKeyId,
    /// Their rights.
    pub rights: Rights,
    /// Tables.
    pub catalog: Arc<dyn CatalogStore>,
    /// Rows.
    pub data: Arc<dyn DataStore>,
    /// Executions.
    pub executions: Arc<dyn ExecutionRepository>,
    /// Jobs.
    pub jobs: Arc<dyn JobRepository>,
}

impl Lab {
    /// A lab of that name, without tables.
    pub async fn named<H: DataHarness>(harness: &H, name: &str) -> Self {
        let organization = harness.organization(name).await.id;
        let user = harness.user(organization, "ada@example.org").await;
        let api_key = harness.api_key(&user).await.id;
        Self {
            organization,
            user: user.id,
            api_key,
            rights: Rights::admin(),
            catalog: harness.subject(),
            data: harness.subject(),
            executions: harness.subject(),
            jobs: harness.subject(),
        }
    }

    /// A lab without tables.
    pub async fn empty<H: DataHarness>(harness: &H) -> Self {
        Self::named(harness, "lab").await
    }

    /// A lab with the tables [`definitions::sample`], [`definitions::measurement`] and
    /// [`definitions::curve`].
    pub async fn with_tables<H: DataHarness>(harness: &H) -> Self {
        let lab = Self::empty(harness).await;
        lab.define_tables().await;
        lab
    }

    /// Defines the tables of [`Lab::with_tables`].
    pub async fn define_tables(&self) {
        for definition in [
            definitions::sample(),
            definitions::measurement(),
            definitions::curve(),
        ] {
            self.define(&definition).await.unwrap();
        }
    }

    /// Defines a table.
    pub async fn define(&self, definition: &TableDefinition) -> Result<Arc<Table>, DefineError> {
        self.catalog
            .define(self.organization, definition, at(50))
            .await
    }

    /// Returns the current catalog.
    pub async fn tables(&self) -> Arc<Catalog> {
        self.catalog.snapshot(self.organization).await.unwrap()
    }

    /// Gives the person the rights of a key that is narrowed to one table.
    pub async fn narrow(&mut self, table: &str) {
        let catalog = self.tables().await;
        let table = catalog.table(table).unwrap().identity();
        self.rights = Rights::admin().narrowed_to(Some(&[table]));
    }

    /// Plans a request as the use case does.
    pub async fn plan(&self, request: WriteRequest) -> Result<WritePlan, Vec<Problem>> {
        let catalog = self.tables().await;
        let checked = check(&request, &catalog);
        let responses = self
            .data
            .look_up(self.organization, checked.questions())
            .await
            .unwrap();
        checked.plan(&responses, &mut given::uuid)
    }

    /// A new execution of that job, to be completed with the write.
    #[must_use]
    pub fn new_execution(job_name: &str) -> WriteTarget {
        WriteTarget::New {
            execution: ExecutionId::new(given::uuid()),
            job_name: JobName::parse(job_name).unwrap(),
            job: JobId::new(given::uuid()),
        }
    }

    /// Applies a plan under an execution.
    pub async fn apply(
        &self,
        plan: &WritePlan,
        target: WriteTarget,
        now: OffsetDateTime,
    ) -> Result<WriteOutcome, WriteError> {
        self.apply_from(plan, target, now, None).await
    }

    /// Applies a plan whose rows come from a file.
    pub async fn apply_from(
        &self,
        plan: &WritePlan,
        target: WriteTarget,
        now: OffsetDateTime,
        source: Option<SourceFile>,
    ) -> Result<WriteOutcome, WriteError> {
        let attribution = Attribution {
            target,
            user: self.user,
            api_key: self.api_key,
            rights: self.rights.clone(),
            now,
            source,
        };
        self.data.write(self.organization, plan, &attribution).await
    }

    /// Plans and applies a request under a new execution.
    pub async fn write(&self, request: WriteRequest) -> Result<WriteOutcome, WriteError> {
        let plan = self.plan(request).await.map_err(WriteError::Problems)?;
        self.apply(&plan, Self::new_execution("some job"), writing_time())
            .await
    }

    /// Plans and applies a request under an execution.
    pub async fn write_under(
        &self,
        execution: ExecutionId,
        request: WriteRequest,
    ) -> Result<WriteOutcome, WriteError> {
        let plan = self.plan(request).await.map_err(WriteError::Problems)?;
        self.apply(&plan, WriteTarget::Existing(execution), writing_time())
            .await
    }

    /// Inserts rows, which succeeds; returns the execution that did so.
    pub async fn insert(&self, table: &str, rows: Value) -> ExecutionId {
        self.write(request([insert(table, rows)], []))
            .await
            .unwrap()
            .execution
            .unwrap()
    }

    /// Reads a page of a table.
    pub async fn read(&self, plan: &ReadPlan) -> RowPage {
        self.data.read(self.organization, plan).await.unwrap()
    }

    /// Reads the series that a row owns by its reference.
    pub async fn series(
        &self,
        table: &str,
        reference: Option<&str>,
        parent: &str,
        limits: SeriesLimits,
    ) -> Result<SeriesColumns, ReadSeriesError> {
        let catalog = self.tables().await;
        let plan = SeriesPlan::new(&catalog, table, reference, parent).unwrap();
        self.data
            .read_series(self.organization, &plan, limits)
            .await
    }

    /// A plan to read rows of a table of the organization, of a core table or of the platform.
    pub async fn read_plan(&self, table: &str, filters: Value, limit: u32) -> ReadPlan {
        let selection = RowSelection {
            filters: as_map(filters),
            limit,
            ..RowSelection::default()
        };
        self.selection_plan(table, selection).await
    }

    /// A plan to read selected rows of a table, as [`Self::read_plan`] finds it.
    pub async fn selection_plan(&self, table: &str, selection: RowSelection) -> ReadPlan {
        let catalog = self.tables().await;
        let target = ReadTarget::find(&catalog, table, false)
            .or_else(|| ReadTarget::find(&catalog, table, true))
            .unwrap();
        let plan = ReadPlan::new(target, &catalog, selection).unwrap();
        ReadPlan {
            visible_tables: VisibleTables::All,
            ..plan
        }
    }

    /// The rows that meet the filters, in the order in which they are read.
    pub async fn find(&self, table: &str, filters: Value) -> Vec<Map<String, Value>> {
        let plan = self.read_plan(table, filters, 1000).await;
        let page = self.read(&plan).await;
        assert_eq!(page.next, None, "more than 1000 rows");
        page.rows
            .iter()
            .map(|row| serde_json::from_str(row.as_str()).unwrap())
            .collect()
    }

    /// One column of all rows, ordered.
    pub async fn column(&self, table: &str, column: &str) -> Vec<Value> {
        let mut values: Vec<Value> = self
            .find(table, Value::Object(Map::new()))
            .await
            .into_iter()
            .map(|mut row| row.remove(column).unwrap())
            .collect();
        values.sort_by_key(ToString::to_string);
        values
    }

    /// Counts the rows or points of a table.
    pub async fn count(&self, table: &str) -> usize {
        self.find(table, Value::Object(Map::new())).await.len()
    }

    /// The id of the sample of that name.
    pub async fn sample(&self, name: &str) -> String {
        let rows = self
            .find("sample", serde_json::json!({ "name": name }))
            .await;
        rows.first()
            .unwrap()
            .get("id")
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// An execution of the organization.
    pub async fn execution(&self, id: ExecutionId) -> Execution {
        self.executions.get(self.organization, id).await.unwrap()
    }

    /// Reverts an execution.
    pub async fn revert(&self, execution: ExecutionId) -> Result<RevertReport, RevertError> {
        let request = self.reverting(execution);
        self.data.revert(self.organization, &request).await
    }

    /// The request to revert an execution.
    #[must_use]
    pub fn reverting(&self, execution: ExecutionId) -> RevertRequest {
        RevertRequest {
            execution,
            user: self.user,
            api_key: Some(self.api_key),
            rights: self.rights.clone(),
            now: at(200),
            dry_run: false,
            restore: None,
        }
    }

    /// Changes of an execution.
    pub async fn changes(&self, execution: ExecutionId) -> ExecutionChanges {
        let changes = self.data.changes(self.organization, execution);
        changes.await.unwrap()
    }
}

fn as_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

fn as_list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        other => panic!("not a list: {other}"),
    }
}

/// A request of table writes and series.
#[must_use]
pub fn request(
    tables: impl IntoIterator<Item = TableWrite>,
    series: impl IntoIterator<Item = SeriesWrite>,
) -> WriteRequest {
    WriteRequest {
        tables: tables.into_iter().collect(),
        series: series.into_iter().collect(),
        ..WriteRequest::default()
    }
}

/// A table write of a list of rows.
#[must_use]
pub fn table_write(mode: Mode, table: &str, rows: Value) -> TableWrite {
    let mut read = Rows::default();
    for row in as_list(rows) {
        read.begin_row();
        for (position, (name, value)) in as_map(row).into_iter().enumerate() {
            read.set(position, &name, Cell::from(value));
        }
    }
    TableWrite {
        table: table.to_owned(),
        rows: read,
        mode,
        ..TableWrite::default()
    }
}

/// Creates rows.
#[must_use]
pub fn insert(table: &str, rows: Value) -> TableWrite {
    table_write(Mode::Insert, table, rows)
}

/// A series of a parent: an id, an `@label` or a lookup.
#[must_use]
pub fn series(table: &str, parent: Value, columns: Value) -> SeriesWrite {
    let columns = as_map(columns)
        .into_iter()
        .map(|(name, values)| {
            let mut read = SeriesValues::default();
            for value in as_list(values) {
                read.push(Cell::from(value));
            }
            (name, read)
        })
        .collect();
    SeriesWrite {
        table: table.to_owned(),
        parent: Cell::from(parent),
        columns,
        parent_column: None,
    }
}

/// A sample's row with a label of the same name.
#[must_use]
pub fn labelled_sample(name: &str) -> Value {
    let mut row = Map::new();
    row.insert(LABEL_KEY.to_owned(), Value::from(name));
    row.insert("name".to_owned(), Value::from(name));
    Value::Object(row)
}

/// Fails unless a write was refused with problems; returns them.
#[track_caller]
#[expect(
    clippy::must_use_candidate,
    reason = "most clauses only need that it was refused"
)]
pub fn assert_problems(result: Result<WriteOutcome, WriteError>) -> Vec<Problem> {
    match result {
        Err(WriteError::Problems(problems)) => {
            assert!(!problems.is_empty(), "a refusal says why");
            problems
        }
        other => panic!("expected problems, got {other:?}"),
    }
}

/// Fails unless a write was refused with exactly these problems.
#[track_caller]
pub fn assert_problems_are(result: Result<WriteOutcome, WriteError>, expected: &[Problem]) {
    assert_eq!(assert_problems(result), expected);
}

/// The problem of values that must be unique and occur twice.
#[must_use]
pub fn repeated(table: &str, constraint: &str, columns: &str, values: &str) -> Problem {
    Violation::Repeated(violated_key(table, constraint, columns, values)).into()
}

/// The problem of a reference that would point at no row.
#[must_use]
pub fn dangling(table: &str, constraint: &str, columns: &str, values: &str) -> Problem {
    Violation::Dangling(violated_key(table, constraint, columns, values)).into()
}

/// A key constraint with the values that break it.
#[must_use]
pub fn violated_key(table: &str, constraint: &str, columns: &str, values: &str) -> ViolatedKey {
    ViolatedKey {
        table: table.to_owned(),
        constraint: constraint.to_owned(),
        columns: columns.to_owned(),
        values: values.to_owned(),
    }
}
