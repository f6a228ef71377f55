//! Writes series as chunks: one row per parent and run of points, one typed array per column.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    data::{
        history::ChangeAction,
        write::{
            Order, Problem, ResolvedColumn, SeriesOutcome, SeriesStep, TableOutcome, WritePlan,
        },
    },
    scalar::{KeyValue, Scalar, Values},
};
use labdata_ports::PortError;
use time::OffsetDateTime;

use super::{context::WriteContext, failure::Failure};
use crate::{
    catalog::ddl::POINTS_PER_CHUNK,
    database::{
        names::{ChunkNames, column_name},
        sql::{
            Statement, bind_rows, bind_scalar, bind_values, gather, key_from_text, key_values,
            sql_type, statement,
        },
    },
};

/// Maximum number of parameters of one statement; PostgreSQL's limit is 65,535.
const MAX_PARAMETERS: usize = 30_000;

/// A series whose parent and references are known.
struct ReadySeries<'p> {
    step: &'p SeriesStep,
    parent: KeyValue,
    /// True if this request creates the parent.
    is_new: bool,
    /// Columns with a value per point.
    columns: Vec<ResolvedColumn<'p>>,
}

impl<'p> ReadySeries<'p> {
    fn new(
        step: &'p SeriesStep,
        parent: KeyValue,
        tables: &[TableOutcome],
        new_rows: &HashSet<(&str, &KeyValue)>,
    ) -> Result<Self, Vec<Problem>> {
        let columns = step.columns.iter().map(|column| column.resolve(tables));
        Ok(Self {
            is_new: new_rows.contains(&(step.owner.parent.name.as_str(), &parent)),
            columns: columns.collect::<Result<_, _>>()?,
            step,
            parent,
        })
    }

    /// Returns whether each point has a place and a value in each column.
    fn is_whole(&self) -> bool {
        let points = self.step.points;
        let is_placed = match &self.step.order {
            Order::Positions => true,
            Order::Given(places) => places.len() == points,
        };
        is_placed && self.columns.iter().all(|it| it.values.len() == points)
    }

    /// Table, reference to the parent and columns: series that agree in them share statements.
    fn form(&self) -> (&'p str, usize, Vec<usize>) {
        let owner = &self.step.owner;
        let columns = self.columns.iter();
        let columns = columns.map(|given| given.column().position());
        (
            &owner.table.name,
            owner.column.position(),
            columns.collect(),
        )
    }
}

#[derive(QueryableByName)]
struct Replaced {
    #[diesel(sql_type = Text)]
    parent: String,
    #[diesel(sql_type = BigInt)]
    points: i64,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    written_at: Option<OffsetDateTime>,
}

#[derive(QueryableByName)]
struct ChangedParents {
    #[diesel(sql_type = Nullable<Timestamptz>)]
    latest: Option<OffsetDateTime>,
}

/// Writes the plan's series in place of the parents' earlier ones, once all table writes are
/// applied.
pub(super) async fn write_series(
    connection: &mut AsyncPgConnection,
    context: &mut WriteContext<'_>,
    plan: &WritePlan,
    tables: &[TableOutcome],
) -> Result<Vec<SeriesOutcome>, Failure> {
    let series = ready_series(plan, tables).map_err(Failure::Problems)?;
    // A chunk takes a slice of each column: of a shorter one it would store less than was sent.
    if !series.iter().all(ReadySeries::is_whole) {
        return Err(PortError::Internal("a series has columns of two lengths".to_owned()).into());
    }
    // Series of one form are written together, so the number of statements does not grow with that
    // of series. Ordered, so that concurrent writers lock parents in one order.
    let mut forms: BTreeMap<_, SeriesForm<'_>> = BTreeMap::new();
    for ready in &series {
        let form = forms.entry(ready.form());
        let form = form.or_insert_with(|| SeriesForm::of(ready.step, context));
        form.members.push(ready);
    }
    let mut replaced = HashMap::new();
    for form in forms.values() {
        let owner = &form.step.owner;
        for (parent, points) in form.remove(connection, context).await? {
            replaced.insert((owner.table.name.as_str(), &owner.column, parent), points);
        }
        form.insert(connection, context).await?;
    }
    Ok(series
        .iter()
        .map(|ready| {
            let owner = &ready.step.owner;
            let table = owner.table.name.as_str();
            // A parent without an earlier series is not among the replaced ones.
            let replaced = replaced.get(&(table, &owner.column, ready.parent.clone()));
            SeriesOutcome {
                table: table.to_owned(),
                parent: ready.parent.clone(),
                points_written: u64::try_from(ready.step.points).unwrap_or(u64::MAX),
                points_replaced: replaced.copied().unwrap_or_default(),
            }
        })
        .collect())
}

/// The plan's series with their parents and references.
fn ready_series<'p>(
    plan: &'p WritePlan,
    tables: &[TableOutcome],
) -> Result<Vec<ReadySeries<'p>>, Vec<Problem>> {
    let parents = plan.series_parents(tables)?;
    // Rows of this transaction are seen by no other one: they need no lock, and have no earlier chunks.
    let new_rows: HashSet<(&str, &KeyValue)> = plan
        .tables
        .iter()
        .zip(tables)
        .filter(|(step, _)| step.inserted_keys().is_some())
        .flat_map(|(step, done)| done.ids.iter().map(|id| (step.table.name.as_str(), id)))
        .collect();
    let series = plan.series.iter().zip(parents);
    series
        .map(|(step, parent)| ReadySeries::new(step, parent, tables, &new_rows))
        .collect()
}

/// Statements for series of one form.
struct SeriesForm<'s> {
    /// One of the series.
    step: &'s SeriesStep,
    names: ChunkNames<'s>,
    members: Vec<&'s ReadySeries<'s>>,
}

impl<'s> SeriesForm<'s> {
    fn of(step: &'s SeriesStep, context: &WriteContext<'_>) -> Self {
        Self {
            step,
            names: context.schemas.chunk_names(&step.owner),
            members: Vec::new(),
        }
    }

    /// Deletes the parents' earlier series; returns their numbers of points.
    async fn remove(
        &self,
        connection: &mut AsyncPgConnection,
        context: &mut WriteContext<'_>,
    ) -> Result<HashMap<KeyValue, u64>, Failure> {
        let ChunkNames {
            name,
            owner,
            owner_type,
            ..
        } = &self.names;
        let data_type = self.step.owner.column.data_type;
        // Before the deletion: of two writers of one series the second would find no chunks yet, and both would
        // insert theirs.
        let changed = self.lock_parents(connection).await?;
        context.not_before(changed)?;
        let parents = self.members.iter().map(|ready| ready.parent.clone());
        let parents = key_values(parents, data_type);
        let owned = &self.step.owner;
        let recording = context.recording(&owned.table);
        let recording = recording.of_owner(&owned.column.sql_name());
        let query = statement(format!(
            // One statement deletes and records: what the history says was deleted is exactly what was.
            "WITH deleted AS (DELETE FROM {name} c WHERE {owner} = ANY($1::{owner_type}[]) RETURNING {owner}, _points, _written_at, \
             c._chunk::text AS key, {before}), dated AS (SELECT d.*, greatest($2, (SELECT max(_written_at) \
             + interval '1 microsecond' FROM deleted)) AS at FROM deleted d){recorded} \
             SELECT {owner}::text AS parent, sum(_points)::bigint AS points, max(_written_at) AS written_at \
             FROM deleted GROUP BY {owner}",
            before = recording.row("c"),
            recorded = recording.part(ChangeAction::Deleted, "dated", 2),
        ));
        let query = bind_values(query, &parents).bind::<Timestamptz, _>(context.now);
        let deleted: Vec<Replaced> = recording.bind(query).load(connection).await?;
        context.later_than(deleted.iter().filter_map(|row| row.written_at).max())?;
        context.note_stored();
        Ok(deleted
            .into_iter()
            .map(|row| {
                let points = u64::try_from(row.points).unwrap_or_default();
                (key_from_text(row.parent, data_type), points)
            })
            .collect())
    }

    /// Locks parents, so that writers of one parent's series wait for each other and never mix their
    /// points; returns the moment of their last change. Other writers cannot see the parents that this request creates.
    async fn lock_parents(
        &self,
        connection: &mut AsyncPgConnection,
    ) -> Result<Option<OffsetDateTime>, Failure> {
        let parents = self.members.iter().filter(|ready| !ready.is_new);
        let names = &self.names.parents;
        // Ordered by key: writers that replace the same series in another order wait for each other instead of
        // deadlocking.
        let keys = names.key_values(parents.map(|ready| &ready.parent));
        if keys.is_empty() {
            return Ok(None);
        }
        // NO KEY: the foreign keys of new chunks take KEY SHARE locks, which must not wait.
        let query = statement(format!(
            "SELECT max(p.updated_at) AS latest FROM (SELECT t.updated_at FROM {} t WHERE t.{key} = ANY($1::{}[]) \
             ORDER BY t.{key} FOR NO KEY UPDATE) p",
            names.name,
            names.key_type,
            key = names.key,
        ));
        let parents: ChangedParents = bind_values(query, &keys).get_result(connection).await?;
        Ok(parents.latest)
    }

    async fn insert(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
    ) -> Result<(), Failure> {
        let chunks: Vec<Chunk<'_>> = self
            .members
            .iter()
            .flat_map(|ready| {
                cut(ready)
                    .into_iter()
                    .map(|points| Chunk::of(ready, points))
            })
            .collect();
        // The number of parameters limits a statement, so wide tables take fewer chunks at a time.
        let per_chunk = Chunk::OWN_PARAMETERS + self.step.columns.len();
        for part in chunks.chunks((MAX_PARAMETERS / per_chunk).max(1)) {
            let query = statement(self.insert_text(part.len()))
                .bind::<SqlUuid, _>(context.execution.as_uuid())
                .bind::<Timestamptz, _>(context.now);
            let query = part.iter().fold(query, |query, chunk| chunk.bind(query));
            query.execute(connection).await?;
        }
        Ok(())
    }

    /// An insert of that many chunks. The execution and the time are its first parameters.
    fn insert_text(&self, chunks: usize) -> String {
        let columns = || self.step.columns.iter().map(|given| &given.column);
        let names: Vec<String> = std::iter::once(self.names.owner.clone())
            .chain(columns().map(|column| column_name(column)))
            .collect();
        // $1 and $2 are the execution and the time, which all chunks share.
        let mut parameter = 2;
        let mut next = || {
            parameter += 1;
            parameter
        };
        let mut rows = Vec::with_capacity(chunks);
        for _ in 0..chunks {
            let mut row = vec![
                "$1".to_owned(),
                "$2".to_owned(),
                format!("${}::integer", next()),
                format!("${}::bigint", next()),
                format!("${}::bigint[]", next()),
                format!("${}::{}", next(), self.names.owner_type),
            ];
            row.extend(columns().map(|column| {
                let (number, data_type) = (next(), sql_type(column.data_type));
                match column.references {
                    // A chunk has one value of each reference, for its foreign key; it is bound
                    // as an array of one, as all values are.
                    Some(_) => format!("(${number}::{data_type}[])[1]"),
                    None => format!("${number}::{data_type}[]"),
                }
            }));
            rows.push(format!("({})", row.join(",")));
        }
        format!(
            "INSERT INTO {chunks} (_execution, _written_at, _points, _start, _order, {names}) VALUES {rows}",
            chunks = self.names.name,
            names = names.join(", "),
            rows = rows.join(", "),
        )
    }
}

/// A chunk to be written.
struct Chunk<'s> {
    parent: Scalar,
    columns: Vec<ChunkColumn<'s>>,
    points: Range<usize>,
    start: i64,
    order: Option<Vec<i64>>,
}

/// Values of a column in a chunk.
enum ChunkColumn<'s> {
    /// The one value of a reference.
    Reference(Values),
    /// The values of all points of the series.
    Values(&'s Values),
}

impl<'s> Chunk<'s> {
    /// Parameters beside those of the columns.
    const OWN_PARAMETERS: usize = 4;

    fn of(ready: &'s ReadySeries<'_>, points: Range<usize>) -> Self {
        let column = |given: &'s ResolvedColumn<'_>| match given.column().references {
            // `cut` ends a chunk where a reference changes, so its first point speaks for all.
            Some(_) => ChunkColumn::Reference(gather(&given.values, &[points.start])),
            None => ChunkColumn::Values(&given.values),
        };
        let (start, order) = places(&ready.step.order, &points);
        Self {
            parent: ready.parent.clone().into(),
            columns: ready.columns.iter().map(column).collect(),
            start,
            order,
            points,
        }
    }

    fn bind<'f>(&'f self, query: Statement<'f>) -> Statement<'f> {
        let query = query
            .bind::<Integer, _>(i32::try_from(self.points.len()).unwrap_or(i32::MAX))
            .bind::<BigInt, _>(self.start)
            .bind::<Nullable<Array<BigInt>>, _>(&self.order);
        let query = bind_scalar(query, &self.parent);
        let columns = self.columns.iter();
        columns.fold(query, |query, column| match column {
            ChunkColumn::Reference(value) => bind_values(query, value),
            ChunkColumn::Values(values) => bind_rows(query, values, self.points.clone()),
        })
    }
}

/// The points of each chunk: at most 4,096, with one value of each reference.
fn cut(ready: &ReadySeries<'_>) -> Vec<Range<usize>> {
    let references: Vec<&Values> = ready
        .columns
        .iter()
        .filter(|given| given.column().references.is_some())
        .map(|given| &*given.values)
        .collect();
    let changes = |point: usize| {
        let mut references = references.iter();
        references.any(|values| values.comparable(point) != values.comparable(point - 1))
    };
    let mut ranges = Vec::new();
    let mut from = 0;
    while from < ready.step.points {
        // A chunk has one value of each reference, for its foreign key: a change of one ends the chunk early.
        let full = (from + usize::from(POINTS_PER_CHUNK)).min(ready.step.points);
        let to = (from + 1..full)
            .find(|point| changes(*point))
            .unwrap_or(full);
        ranges.push(from..to);
        from = to;
    }
    ranges
}

/// The first place of a chunk, and all of them if they are not consecutive.
fn places(order: &Order, points: &Range<usize>) -> (i64, Option<Vec<i64>>) {
    match order {
        Order::Positions => (i64::try_from(points.start).unwrap_or(i64::MAX), None),
        Order::Given(places) => {
            let places = places.get(points.clone()).unwrap_or_default();
            let start = places.first().copied().unwrap_or_default();
            // Consecutive orders follow from the first one: most series need no array of them.
            let consecutive = places
                .windows(2)
                .all(|pair| matches!(pair, [a, b] if a.checked_add(1) == Some(*b)));
            (start, (!consecutive).then(|| places.to_vec()))
        }
    }
}
