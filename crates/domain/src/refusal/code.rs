//! Stable codes of refusals.

use std::fmt;

use serde::{Serialize, Serializer};

/// Declares the codes once: variant, word and meaning.
macro_rules! error_codes {
    ($($(#[doc = $meaning:literal])+ $variant:ident = $word:literal,)+) => {
        /// Stable word that says why a request failed. Messages may change, codes do not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode {
            $($(#[doc = $meaning])+ $variant,)+
        }

        impl ErrorCode {
            /// All codes, sorted by their words.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the word, in snake case.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Returns the meaning, for the reference.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($meaning),+).trim_ascii(),)+
                }
            }
        }
    };
}

error_codes! {
    /// A setting of the agent's provider is missing.
    AgentNotConfigured = "agent_not_configured",
    /// Too many agent runs of the organization are in progress.
    AgentRunsExceeded = "agent_runs_exceeded",
    /// The job backend does not fit the organization.
    BackendUnfit = "backend_unfit",
    /// The request body did not arrive in time.
    BodyTimeout = "body_timeout",
    /// The request body exceeds the limit.
    BodyTooLarge = "body_too_large",
    /// The request or its body cannot be read.
    BodyUnreadable = "body_unreadable",
    /// Other requests hold what this one needs; retry after the seconds of `Retry-After`.
    Busy = "busy",
    /// The row's `updated_at` differs from the one given.
    ChangedSince = "changed_since",
    /// The chat has reached its limit of messages.
    ChatFull = "chat_full",
    /// The table needs the column.
    ColumnNeeded = "column_needed",
    /// The column holds values; `force` drops it with them.
    ColumnNotEmpty = "column_not_empty",
    /// The platform or the key determines the column, so it cannot be written.
    ColumnNotWritable = "column_not_writable",
    /// A row would break a constraint of the table.
    ConstraintViolation = "constraint_violation",
    /// The API key, session, link or token is unknown, revoked, used or expired.
    CredentialInvalid = "credential_invalid",
    /// The request carries no API key or session.
    CredentialMissing = "credential_missing",
    /// The API key belongs to the user who would be disabled.
    DisablesSelf = "disables_self",
    /// The platform's disk is full.
    DiskFull = "disk_full",
    /// The file can be read in several ways that differ in values; options settle it.
    DoubtfulReading = "doubtful_reading",
    /// A column is named twice.
    DuplicateColumn = "duplicate_column",
    /// Two rows of one table write have the same key, or two points the same place.
    DuplicateKey = "duplicate_key",
    /// A parent has a second series of the same table in the request.
    DuplicateSeries = "duplicate_series",
    /// Another user of the organization has this e-mail address.
    EmailTaken = "email_taken",
    /// The execution has ended and accepts no writes and files.
    ExecutionClosed = "execution_closed",
    /// The execution has ended with another status, which is final.
    ExecutionEnded = "execution_ended",
    /// The platform or a data write owns the execution, so it cannot be closed.
    ExecutionNotClosable = "execution_not_closable",
    /// All connections or slots are in use; retry after the seconds of `Retry-After`.
    Exhausted = "exhausted",
    /// The upload of the file is not confirmed yet.
    FileNotConfirmed = "file_not_confirmed",
    /// Reading the file takes too much, or broke its reader.
    FileNotReadable = "file_not_readable",
    /// The bytes of the file were not uploaded yet.
    FileNotUploaded = "file_not_uploaded",
    /// The file exceeds the limit.
    FileTooLarge = "file_too_large",
    /// A row would reference a row that does not exist.
    ForeignKeyViolation = "foreign_key_violation",
    /// A page of another site sent the request.
    ForeignSite = "foreign_site",
    /// The access of tables names the group.
    GroupInUse = "group_in_use",
    /// The response holds a secret, so the operation takes no Idempotency-Key.
    IdempotencyUnsupported = "idempotency_unsupported",
    /// Files or triggers refer to the instrument.
    InstrumentInUse = "instrument_in_use",
    /// The platform failed; its log has the cause under the request id.
    Internal = "internal",
    /// A mask or a label of an annotation is invalid.
    InvalidAnnotation = "invalid_annotation",
    /// The code is no Python, or its script metadata cannot be used.
    InvalidCode = "invalid_code",
    /// The data cannot become a dataset.
    InvalidDataset = "invalid_dataset",
    /// The table definition is invalid, or would lose or reject stored data.
    InvalidDefinition = "invalid_definition",
    /// An edit does not match exactly once, or makes the script too long.
    InvalidEdit = "invalid_edit",
    /// The text is no e-mail address.
    InvalidEmail = "invalid_email",
    /// The expiry time is in the past.
    InvalidExpiry = "invalid_expiry",
    /// The columns cannot serve as a key.
    InvalidKey = "invalid_key",
    /// The lookup object has no columns, or one by which no row can be looked up.
    InvalidLookup = "invalid_lookup",
    /// The name is blank, too long, or has characters that are not permitted.
    InvalidName = "invalid_name",
    /// The notification's text, action or data are invalid.
    InvalidNotification = "invalid_notification",
    /// The parameters, or their definitions, are invalid.
    InvalidParameters = "invalid_parameters",
    /// The value is no position in the list or stream of events.
    InvalidPosition = "invalid_position",
    /// The rows or options of the prediction do not fit the model.
    InvalidPrediction = "invalid_prediction",
    /// The prompt is empty or too long.
    InvalidPrompt = "invalid_prompt",
    /// An input of the Python snippet is invalid or too large.
    InvalidPythonInput = "invalid_python_input",
    /// The query is refused before it runs.
    InvalidQuery = "invalid_query",
    /// The filters, columns or order of the read are invalid.
    InvalidRead = "invalid_read",
    /// The report of the training is invalid.
    InvalidReport = "invalid_report",
    /// The schedule is no cron expression, has an unknown time zone, or never fires.
    InvalidSchedule = "invalid_schedule",
    /// The dataset does not permit the training.
    InvalidTraining = "invalid_training",
    /// The trigger, or its conditions, are invalid.
    InvalidTrigger = "invalid_trigger",
    /// The value is not permitted.
    InvalidValue = "invalid_value",
    /// The rows or series of a write have problems, each with its code.
    InvalidWrite = "invalid_write",
    /// The job is archived.
    JobArchived = "job_archived",
    /// The key matches several stored rows.
    KeyAmbiguous = "key_ambiguous",
    /// The API key is narrowed to some tables, and what it would start or read is not.
    KeyNarrowed = "key_narrowed",
    /// Another API key has this prefix.
    KeyPrefixTaken = "key_prefix_taken",
    /// Two rows have the same label.
    LabelDuplicate = "label_duplicate",
    /// No earlier row has this label, or it is a row of another table or deleted.
    LabelUnknown = "label_unknown",
    /// The user is the last administrator of the organization who is not disabled.
    LastAdmin = "last_admin",
    /// The lists of a series differ in length.
    LengthMismatch = "length_mismatch",
    /// The lookup matches several rows.
    LookupAmbiguous = "lookup_ambiguous",
    /// The lookup matches no row.
    LookupNoMatch = "lookup_no_match",
    /// The path has no such method.
    MethodNotAllowed = "method_not_allowed",
    /// A required column or key value is missing or null.
    MissingValue = "missing_value",
    /// The model is archived.
    ModelArchived = "model_archived",
    /// The language model is not on the allowlist.
    ModelNotAllowed = "model_not_allowed",
    /// The model is being loaded; retry after the seconds of `Retry-After`.
    ModelPreparing = "model_preparing",
    /// Further problems, which are only counted.
    MoreProblems = "more_problems",
    /// Another resource of the organization has this name.
    NameTaken = "name_taken",
    /// The file is a native executable.
    NativeExecutable = "native_executable",
    /// The model has no version that predicts.
    NoActiveVersion = "no_active_version",
    /// The table stores no earlier versions of its rows.
    NoHistory = "no_history",
    /// The table has no series, or the reference to its parent is ambiguous.
    NotASeries = "not_a_series",
    /// The operation has no representation that `Accept` permits.
    NotAcceptable = "not_acceptable",
    /// The file is no image, or one with too many pixels.
    NotAnImage = "not_an_image",
    /// The key of a platform run may not do this.
    NotForRuns = "not_for_runs",
    /// No such resource exists in the organization, or no such path.
    NotFound = "not_found",
    /// Only a published version of the job's script may run, and it has none.
    NotPublished = "not_published",
    /// Another user saved the view.
    NotYourView = "not_your_view",
    /// No version of the model is pending or training.
    NothingInFlight = "nothing_in_flight",
    /// The cap on delivered notifications is reached.
    NotificationCapReached = "notification_cap_reached",
    /// The connection broke during the commit; whether the request had an effect is not known.
    OutcomeUnknown = "outcome_unknown",
    /// A required parameter has neither a value nor a default.
    ParameterMissing = "parameter_missing",
    /// The table has several references; `parent_column` names the one to the parent.
    ParentAmbiguous = "parent_ambiguous",
    /// The instrument has a confirmed file of this path.
    PathTaken = "path_taken",
    /// The column belongs to the platform.
    PlatformColumn = "platform_column",
    /// The table belongs to the platform.
    PlatformTable = "platform_table",
    /// A condition of the request's headers does not hold.
    PreconditionFailed = "precondition_failed",
    /// Too many predictions are in progress; retry after the seconds of `Retry-After`.
    PredictionBusy = "prediction_busy",
    /// The model does not predict.
    PredictionFailed = "prediction_failed",
    /// This server cannot run models now.
    PredictionUnavailable = "prediction_unavailable",
    /// The platform does not speak the revision of the Model Context Protocol that the header names.
    ProtocolVersionUnsupported = "protocol_version_unsupported",
    /// The provider of the language model failed.
    ProviderFailed = "provider_failed",
    /// This server cannot run Python now.
    PythonUnavailable = "python_unavailable",
    /// This server runs no queries.
    QueriesUnavailable = "queries_unavailable",
    /// The database cannot run the query, or found an error in it.
    QueryFailed = "query_failed",
    /// The query took longer than its limit.
    QueryTimedOut = "query_timed_out",
    /// The organization's storage quota does not have room for it.
    QuotaExceeded = "quota_exceeded",
    /// No byte of the requested range exists.
    RangeNotSatisfiable = "range_not_satisfiable",
    /// This API key sent too many requests in a minute.
    RateLimited = "rate_limited",
    /// No row has this id.
    ReferenceNotFound = "reference_not_found",
    /// Something that a deleted table, column or file refers to was deleted, so it cannot be restored.
    RestoreBlocked = "restore_blocked",
    /// The result exceeds the limits of rows, values or bytes.
    ResultTooLarge = "result_too_large",
    /// Rows of other executions reference rows that the revert would delete.
    RevertBlocked = "revert_blocked",
    /// The role of the user lacks a scope that the key is to have.
    RoleExceeded = "role_exceeded",
    /// No stored row has this key.
    RowNotFound = "row_not_found",
    /// Rows reference the row that would be deleted; `cascade` deletes them with it.
    RowReferenced = "row_referenced",
    /// The API key or session lacks the scope that the operation requires.
    ScopeMissing = "scope_missing",
    /// The job's script has another version than the one given.
    ScriptChanged = "script_changed",
    /// The job has no script.
    ScriptMissing = "script_missing",
    /// Several rows match a read of a single one.
    SeveralRows = "several_rows",
    /// The file has no such sheet, or no sheets at all.
    SheetUnknown = "sheet_unknown",
    /// The identity provider, or the rules for its people, refuse the sign-in.
    SignInRefused = "sign_in_refused",
    /// The server offers no SQL logins.
    SqlLoginsOff = "sql_logins_off",
    /// Several organizations share the platform, and its settings do not allow SQL logins then.
    SqlNotShared = "sql_not_shared",
    /// The platform may not create roles in its PostgreSQL.
    SqlRolesRefused = "sql_roles_refused",
    /// Stored rows break a constraint of the definition.
    StoredRowsConflict = "stored_rows_conflict",
    /// The table holds rows; `force` drops it with them.
    TableNotEmpty = "table_not_empty",
    /// The caller may not write the table.
    TableReadOnly = "table_read_only",
    /// Other tables reference the table.
    TableReferenced = "table_referenced",
    /// Definitions of tables changed while the request was carried out.
    TablesChanged = "tables_changed",
    /// The request exceeded the platform's time limit; whether it had an effect is not known.
    TimedOut = "timed_out",
    /// The organization has used its tokens of this month.
    TokenBudgetUsed = "token_budget_used",
    /// The request has more rows than the limit.
    TooManyRows = "too_many_rows",
    /// The organization has as many saved views as it may have.
    TooManySavedViews = "too_many_saved_views",
    /// The organization has as many SQL logins as it may have.
    TooManySqlLogins = "too_many_sql_logins",
    /// The request has more values than the limit.
    TooManyValues = "too_many_values",
    /// The organization has as many webhooks as it may have.
    TooManyWebhooks = "too_many_webhooks",
    /// Too many trainings of the organization wait.
    TrainingQueueFull = "training_queue_full",
    /// No worker can train models now.
    TrainingUnavailable = "training_unavailable",
    /// A service behind the platform does not respond.
    Unavailable = "unavailable",
    /// A row would repeat values that must be unique.
    UniqueViolation = "unique_violation",
    /// The table has no such column, or the file no such field.
    UnknownColumn = "unknown_column",
    /// The file is neither text, nor a workbook, nor Parquet.
    UnknownFormat = "unknown_format",
    /// The organization has no group of this name.
    UnknownGroup = "unknown_group",
    /// The organization has no such table.
    UnknownTable = "unknown_table",
    /// The file cannot be read as its format.
    UnreadableFile = "unreadable_file",
    /// A row of the file cannot be believed, such as one with more cells than the header.
    UnreadableRow = "unreadable_row",
    /// A value cannot be written in the requested format.
    Unrepresentable = "unrepresentable",
    /// The operation does not read this Content-Type.
    UnsupportedMediaType = "unsupported_media_type",
    /// Another upload of this path was confirmed first.
    UploadSuperseded = "upload_superseded",
    /// The upload names neither an execution nor an instrument.
    UploadUnattributed = "upload_unattributed",
    /// The user is disabled.
    UserDisabled = "user_disabled",
    /// A value, or all of a row, exceeds a limit of the database.
    ValueTooLarge = "value_too_large",
    /// The version is not ready.
    VersionNotReady = "version_not_ready",
    /// The webhook is disabled, so it sends nothing.
    WebhookDisabled = "webhook_disabled",
    /// The table is raw or the platform's, where a curated one is needed, or the reverse.
    WrongTableKind = "wrong_table_kind",
    /// The value does not have the column's type.
    WrongType = "wrong_type",
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_words_in_snake_case_with_a_meaning() {
        let words: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert!(words.is_sorted_by(|left, right| left < right), "{words:?}");
        for code in ErrorCode::ALL {
            let is_of_a_word = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(code.as_str().chars().all(is_of_a_word), "{code}");
            assert!(code.meaning().ends_with('.'), "{code}");
        }
    }
}
