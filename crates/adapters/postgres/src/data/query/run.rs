//! One query over one connection.

use std::{io, time::Duration};

use fallible_iterator::FallibleIterator;
use labdata_domain::{
    data::query::{
        DatabaseMessage, MAX_ROW_BYTES, QueryFailure, QueryLimits, check_parameter_count,
    },
    scalar::DataType,
};
use labdata_ports::{
    PortError,
    data::query::{Query, ResultColumn, ResultSink, SinkClosed},
};
use postgres_protocol::{
    IsNull,
    message::{
        backend::{DataRowBody, Message},
        frontend::{self, BindError},
    },
};

use super::{
    render::{Rendering, data_type, parameter},
    wire::{ServerError, Wire, WireError, server_error},
};
use crate::database::{errors::NO_ANSWER, sql::literal};

/// Time beyond a query's limit that its connection is waited for.
const GRACE: Duration = Duration::from_secs(2);

/// Application name of connections at work, for operators. Set outside of the transaction, so that
/// it stays until the connection is closed.
const NAMING: &str = "SET application_name = 'labdata query'";

/// SQLSTATE of `syntax_error`.
const SYNTAX_ERROR: &str = "42601";

/// Rows that a sink takes at a time, at most.
const BATCH_ROWS: usize = 4_096;

/// Bytes of rows from which a sink takes them.
const BATCH_BYTES: usize = 1 << 20;

/// Failure of a query.
#[derive(Debug)]
pub(super) enum Failure {
    /// An error in the query.
    Refused(QueryFailure),
    /// The query exceeds a limit and may still be running.
    Exceeded(QueryFailure),
    /// The query read something that the role may not read or that does not exist, or the role has
    /// lost its rights.
    Denied(QueryFailure),
    /// The sink takes no more, and the query may still be running.
    Closed(SinkClosed),
    /// A failure of the server.
    Port(PortError),
    /// The connection broke before the query reached the server.
    Stale(Box<Self>),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        WireError::Broken(error).into()
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Server(error) => {
                tracing::warn!(?error, "a connection for a query failed");
                Self::Port(PortError::Unavailable(NO_ANSWER.to_owned()))
            }
            WireError::TooLong => Self::Refused(QueryFailure::TooLong),
            WireError::Broken(error) => {
                tracing::warn!(%error, "the connection of a query broke");
                Self::Port(PortError::Unavailable(NO_ANSWER.to_owned()))
            }
        }
    }
}

impl From<SinkClosed> for Failure {
    fn from(closed: SinkClosed) -> Self {
        Self::Closed(closed)
    }
}

struct Described {
    parameters: Vec<u32>,
    columns: Vec<(String, Rendering)>,
    types: Vec<DataType>,
}

/// A sink, and whether it has been begun.
pub(super) struct Output<'s> {
    sink: &'s mut dyn ResultSink,
    pub(super) has_begun: bool,
}

impl<'s> Output<'s> {
    pub(super) fn new(sink: &'s mut dyn ResultSink) -> Self {
        Self {
            sink,
            has_begun: false,
        }
    }

    async fn begin(&mut self, columns: Vec<ResultColumn>) -> Result<(), SinkClosed> {
        self.has_begun = true;
        self.sink.begin(columns).await
    }
}

struct Running<'r> {
    wire: &'r mut Wire,
    query: &'r Query,
    alias: &'r str,
}

/// Runs a query whose tables are in the schemas of `path`. The connection must not be used again, even if it fails.
pub(super) async fn run(
    wire: &mut Wire,
    path: &str,
    query: &Query,
    alias: &str,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let mut running = Running { wire, query, alias };
    // The server cancels first, with a clear error; this covers a server or a network that does not respond.
    let most = query.limits.time + GRACE;
    match tokio::time::timeout(most, running.run(path, output)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::Exceeded(QueryFailure::TooSlow(query.limits))),
    }
}

impl Running<'_> {
    async fn run(&mut self, path: &str, output: &mut Output<'_>) -> Result<(), Failure> {
        // The query has not begun if this fails, so it may be run over another connection.
        self.set_up(path)
            .await
            .map_err(|failure| Failure::Stale(Box::new(failure)))?;
        let described = self.described().await?;
        check_parameter_count(described.parameters.len(), self.query.params.len())
            .map_err(|refusal| Failure::Refused(refusal.into()))?;
        if described
            .columns
            .iter()
            .any(|(_, rendering)| *rendering == Rendering::ByServer)
        {
            // Only where a type needs it: preparing a second time costs a round trip.
            let rendered = self.rendered_by_server(&described);
            self.prepare(&rendered)?;
            self.wire.send().await?;
            self.described().await?;
        }
        self.bind(&described.parameters)?;
        let longest_row = self.query.limits.bytes.min(MAX_ROW_BYTES);
        // Bounds memory before a row is read; what a row has beside its values fits into the rest.
        self.wire.allow_rows_of(longest_row.saturating_add(1 << 20));
        self.wire.send().await?;
        let columns = described.columns.iter().zip(described.types);
        let columns = columns.map(|((name, _), data_type)| ResultColumn {
            name: name.clone(),
            data_type,
        });
        output.begin(columns.collect()).await?;
        self.rows(&described.columns, output.sink).await
    }

    /// Sends the platform's own statements, and the query after them to be prepared; waits until
    /// the former are done.
    async fn set_up(&mut self, path: &str) -> Result<(), Failure> {
        // The query's text is never sent this way.
        let ours = [NAMING, &setup(path, &self.query.limits)];
        // In one flight with the query's own preparation, so that setting up costs no round trip.
        for statements in ours {
            frontend::query(statements, &mut self.wire.outbox)?;
        }
        let plain = self.wrapped("*", "");
        self.prepare(&plain)?;
        self.wire.begin();
        self.wire.send().await?;
        for _ in ours {
            self.finish_setup().await?;
        }
        Ok(())
    }

    /// The query as a subquery: only a statement that reads is valid there.
    fn wrapped(&self, columns: &str, names: &str) -> String {
        // One more than the limit: its arrival shows that the result is too long.
        let limit = self.query.limits.rows.saturating_add(1);
        let (text, alias) = (self.query.text.as_str(), self.alias);
        // On separate lines: a comment at the query's end must not hide the bracket.
        format!("select {columns} from (\n{text}\n) as {alias}{names} limit {limit}")
    }

    /// The same, with the columns rendered as JSON that only the server can render.
    fn rendered_by_server(&self, described: &Described) -> String {
        let (mut columns, mut names) = (Vec::new(), Vec::new());
        for (index, (_, rendering)) in described.columns.iter().enumerate() {
            names.push(format!("c{index}"));
            columns.push(match rendering {
                Rendering::ByServer => format!("pg_catalog.to_json(c{index})"),
                _ => format!("c{index}"),
            });
        }
        self.wrapped(&columns.join(", "), &format!("({})", names.join(", ")))
    }

    fn prepare(&mut self, statement: &str) -> Result<(), Failure> {
        frontend::parse("", statement, [], &mut self.wire.outbox)?;
        frontend::describe(b'S', "", &mut self.wire.outbox)?;
        frontend::sync(&mut self.wire.outbox);
        Ok(())
    }

    async fn finish_setup(&mut self) -> Result<(), Failure> {
        loop {
            match self.wire.receive().await? {
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(body) => return Err(server_error(&body)?.into()),
                _ => {}
            }
        }
    }

    async fn described(&mut self) -> Result<Described, Failure> {
        let mut described = Described {
            parameters: Vec::new(),
            columns: Vec::new(),
            types: Vec::new(),
        };
        loop {
            match self.wire.receive().await? {
                Message::ParameterDescription(body) => {
                    described.parameters = body.parameters().collect()?;
                }
                Message::RowDescription(body) => {
                    described.types = body
                        .fields()
                        .map(|field| Ok(data_type(field.type_oid())))
                        .collect()?;
                    described.columns = body
                        .fields()
                        .map(|field| Ok((field.name().to_owned(), Rendering::of(field.type_oid()))))
                        .collect()?;
                }
                Message::ReadyForQuery(_) => return Ok(described),
                Message::ErrorResponse(body) => return Err(self.explain(server_error(&body)?)),
                _ => {}
            }
        }
    }

    fn bind(&mut self, types: &[u32]) -> Result<(), Failure> {
        let values = self.query.params.iter().zip(types);
        let values = values.map(|(value, type_oid)| parameter(value, *type_oid));
        let write = |value: Option<String>, buffer: &mut bytes::BytesMut| {
            Ok(match value {
                Some(text) => {
                    buffer.extend_from_slice(text.as_bytes());
                    IsNull::No
                }
                None => IsNull::Yes,
            })
        };
        let outbox = &mut self.wire.outbox;
        // No formats: texts in both directions, so that each type is parsed and printed by PostgreSQL alone.
        frontend::bind("", "", [], values, write, [], outbox).map_err(|error| match error {
            BindError::Conversion(error) => io::Error::other(error),
            BindError::Serialization(error) => error,
        })?;
        frontend::execute("", 0, outbox)?;
        frontend::sync(outbox);
        Ok(())
    }

    async fn rows(
        &mut self,
        columns: &[(String, Rendering)],
        sink: &mut dyn ResultSink,
    ) -> Result<(), Failure> {
        let limits = self.query.limits;
        let (mut count, mut bytes) = (0_usize, 0_usize);
        let (mut rows, mut due) = (Vec::new(), BATCH_BYTES);
        loop {
            let message = match self.wire.receive().await {
                Err(WireError::TooLong) => {
                    return Err(Failure::Exceeded(if limits.bytes > MAX_ROW_BYTES {
                        QueryFailure::RowTooLarge
                    } else {
                        QueryFailure::TooLarge(limits)
                    }));
                }
                other => other?,
            };
            match message {
                Message::DataRow(body) => {
                    // The limit in the statement is one row more, so this row proves that there are others.
                    if count >= limits.rows {
                        return Err(Failure::Exceeded(QueryFailure::TooManyRows(limits)));
                    }
                    let row = render(&body, columns)?;
                    bytes = bytes.saturating_add(row.len() + 1);
                    if bytes > limits.bytes {
                        return Err(Failure::Exceeded(QueryFailure::TooLarge(limits)));
                    }
                    // Collected: a hand-over for each row would cost more than rendering it.
                    rows.push(row);
                    count += 1;
                    if rows.len() >= BATCH_ROWS || bytes >= due {
                        due = bytes.saturating_add(BATCH_BYTES);
                        sink.rows(std::mem::take(&mut rows)).await?;
                    }
                }
                Message::ReadyForQuery(_) => {
                    if !rows.is_empty() {
                        sink.rows(rows).await?;
                    }
                    return Ok(());
                }
                Message::ErrorResponse(body) => return Err(self.explain(server_error(&body)?)),
                _ => {}
            }
        }
    }

    /// The server's error as a message for the query's author.
    fn explain(&self, error: WireError) -> Failure {
        let WireError::Server(error) = error else {
            return error.into();
        };
        let class = error.code.get(..2).unwrap_or_default();
        match (class, error.code.as_str()) {
            (_, "57014") => Failure::Exceeded(QueryFailure::TooSlow(self.query.limits)),
            // A schema that the role may not use looks empty.
            (_, "42501" | "42P01") => Failure::Denied(self.message_of(error)),
            (_, "53300" | "55P03" | "40001" | "40P01") => Failure::Port(PortError::Busy(
                "others hold what the query needs".to_owned(),
            )),
            (_, "54001") => Failure::Refused(QueryFailure::TooDeep),
            (_, "53100") => Failure::Port(PortError::DiskFull(
                "the disk of the database is full".to_owned(),
            )),
            (_, "53200") => Failure::Refused(QueryFailure::TooMuchMemory),
            (_, "53400") => Failure::Refused(QueryFailure::TooMuchTemporarySpace),
            // Interventions, system errors, resources and connections are no fault of the query.
            ("57" | "58" | "53" | "08", _) => WireError::Server(error).into(),
            // An internal error: its text is about PostgreSQL's code, and of no use to the author.
            ("XX", _) => {
                tracing::warn!(?error, "a query made the server fail");
                Failure::Refused(QueryFailure::Unrunnable)
            }
            _ => Failure::Refused(self.message_of(error)),
        }
    }

    /// PostgreSQL's message in terms of the query's own text.
    fn message_of(&self, error: ServerError) -> QueryFailure {
        let lines = self.query.text.as_str().lines().count();
        let line = error.position.and_then(|position| self.line(position));
        // The author knows nothing of the bracket at which the parser stumbles.
        let ends_early = error.code == SYNTAX_ERROR && error.position == self.closing_bracket();
        QueryFailure::Database(DatabaseMessage {
            message: if ends_early {
                "the statement ends too early".to_owned()
            } else {
                // Hides the name that marks the query's end.
                error.message.replace(self.alias, "the query")
            },
            line: line.filter(|line| *line <= lines && lines > 1),
            hint: error.hint,
        })
    }

    /// The line of the query that contains a character of its wrapped form.
    fn line(&self, position: usize) -> Option<usize> {
        let wrapped = self.wrapped("*", "");
        let before = wrapped.chars().take(position.checked_sub(1)?);
        before
            .filter(|letter| *letter == '\n')
            .count()
            // One line of the wrapping comes before the query's first: without a line end before it, the character is
            // one of the wrapping.
            .checked_sub(1)
            .map(|line| line + 1)
    }

    /// Position of the bracket after the query in its wrapped form, counted from one.
    fn closing_bracket(&self) -> Option<usize> {
        let wrapped = self.wrapped("*", "");
        let (query, _) = wrapped.rsplit_once("\n) as ")?;
        Some(query.chars().count() + 2)
    }
}

fn render(row: &DataRowBody, columns: &[(String, Rendering)]) -> Result<String, Failure> {
    let mut json = String::with_capacity(row.buffer().len() + columns.len() * 3 + 2);
    json.push('[');
    let mut ranges = row.ranges();
    let mut index = 0;
    while let Some(range) = ranges.next()? {
        if index > 0 {
            json.push(',');
        }
        let rendering = columns
            .get(index)
            .map_or(Rendering::Text, |(_, rendering)| *rendering);
        match range.and_then(|range| row.buffer().get(range)) {
            Some(bytes) => rendering.push(&mut json, &String::from_utf8_lossy(bytes)),
            None => json.push_str("null"),
        }
        index += 1;
    }
    json.push(']');
    Ok(json)
}

fn setup(path: &str, limits: &QueryLimits) -> String {
    let milliseconds = limits.time.as_millis();
    let settings = [
        ("statement_timeout", literal(&format!("{milliseconds}ms"))),
        // A query behind a change of its table gives up early, and frees its connection.
        ("lock_timeout", literal("5s")),
        ("idle_in_transaction_session_timeout", literal("30s")),
        ("work_mem", literal("16MB")),
        ("search_path", path.to_owned()),
        ("timezone", literal("UTC")),
        // The renderer relies on these formats, and the server's configuration may have others.
        ("datestyle", literal("ISO, YMD")),
        ("intervalstyle", literal("iso_8601")),
        ("extra_float_digits", literal("1")),
        ("bytea_output", literal("hex")),
        ("standard_conforming_strings", literal("on")),
        ("client_min_messages", literal("error")),
    ];
    let settings = settings.map(|(name, value)| format!("; SET LOCAL {name} = {value}"));
    format!("BEGIN READ ONLY{}", settings.concat())
}
