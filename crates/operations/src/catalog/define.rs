//! `PUT /api/v1/tables/{name}`

use labdata_application::{
    Error, Services,
    catalog::define_table::{define_table, required_scope},
};
use labdata_domain::{
    catalog::{
        ColumnDefinition, DefinitionMode, Name, SemanticCategory, TableAccess, TableDefinition,
    },
    people::{group::MAX_GROUP_NAME_LENGTH, scope::Scope},
    scalar::DataType,
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, or, required},
    readers::{any, boolean, choice, choice_of, list, shape, storable, text},
    shape,
};
use serde_json::{Value, json};

use super::{TablePath, table_view::TableView};
use crate::{About, AnyScope, Call, JsonBody, Method, Operation, Tag};

shape! {
    /// The definition of a table, without its name, which the path gives.
    #[derive(Debug)]
    pub struct DefineTableBody {
        /// The table's former name: a table of that name is renamed and retains its data, and references
        /// follow. Ignored once it is done.
        renamed_from: Option<String> = optional(text(..).with("pattern", Name::PATTERN)),
        /// Description of the contents.
        description: Option<String> = optional(text(..)),
        /// `curated` for rows, `raw` for series of points.
        semantic_category: SemanticCategory =
            required(choice_of(SemanticCategory::ALL, SemanticCategory::as_str)),
        /// Its columns. A curated table gets an `id` unless a column is the primary key.
        columns: Vec<ColumnDefinition> =
            required(list(shape::<DefineColumnBody>().map(ColumnDefinition::from))),
        /// Sets of columns whose values together may occur once.
        unique_together: Vec<Vec<String>> = or(
            json!([]),
            list(
                list(text(..).with("pattern", Name::PATTERN))
                    .with("minItems", 2)
                    .with("uniqueItems", true),
            ),
        ),
        /// False stores no earlier versions of its rows or series, and deletes those that are stored.
        history: bool = or(true, boolean()),
        /// Groups whose members may read and write the table; administrators always may. `{}` opens it to
        /// everyone of the organization; left out, the access stays. With `mode=ensure`, new tables only.
        access: Option<TableAccess> = optional(shape::<DefineAccessBody>().map(TableAccess::from)),
    }
    example json!({
        "description": "Samples of the growth experiments",
        "semantic_category": "curated",
        "columns": [
            {"name": "name", "data_type": "string", "is_nullable": false, "is_unique": true},
            {"name": "strain", "data_type": "string", "references": "strain"},
            {"name": "volume", "data_type": "float", "label": "Volume", "unit": "uL"},
        ],
    });
    unknown_fields refused;
}

shape! {
    /// Groups that may read and write a table, besides administrators.
    #[derive(Debug)]
    pub struct DefineAccessBody {
        /// Names of the groups whose members may read it; everyone if empty. Who may write may read, too.
        read: Vec<String> = or(json!([]), list(text(1..=MAX_GROUP_NAME_LENGTH)).of(0..=100)),
        /// Names of the groups whose members may write it; everyone who may read it if empty.
        write: Vec<String> = or(json!([]), list(text(1..=MAX_GROUP_NAME_LENGTH)).of(0..=100)),
    }
    unknown_fields refused;
}

impl From<DefineAccessBody> for TableAccess {
    fn from(body: DefineAccessBody) -> Self {
        Self {
            read: body.read,
            write: body.write,
        }
    }
}

shape! {
    /// The definition of a column.
    #[derive(Debug)]
    pub struct DefineColumnBody {
        /// Its name: a lower-case letter, then at most 62 lower-case letters, digits or underscores.
        name: String = required(text(..).with("pattern", Name::PATTERN).example("volume")),
        /// Its type; of a reference, the type of the other table's primary key.
        data_type: DataType =
            required(choice_of(DataType::ALL, DataType::as_str).example("string")),
        /// Description of the contents.
        description: Option<String> = optional(text(..)),
        /// Its name for people, on axes and headers.
        label: Option<String> = optional(text(..)),
        /// The unit of its values, a [UCUM](https://ucum.org) code.
        unit: Option<String> = optional(text(..).example("ug/mL")),
        /// True if it may be null.
        is_nullable: bool = or(true, boolean()),
        /// True if no two rows may have the same value.
        is_unique: bool = or(false, boolean()),
        /// True if it is the primary key, in place of the generated `id`.
        is_primary_key: bool = or(false, boolean()),
        /// The value of a created row that gives none.
        default: Option<Value> = optional(storable(any())),
        /// The table whose row it points at.
        references: Option<String> =
            optional(text(..).with("pattern", Name::PATTERN).example("sample")),
        /// Its former name: a column of that name is renamed and retains its data. Ignored once it is done.
        renamed_from: Option<String> = optional(text(..).with("pattern", Name::PATTERN)),
    }
    unknown_fields refused;
}

shape! {
    /// Effect of a definition on a table that exists.
    #[derive(Debug)]
    pub struct DefineTableQuery {
        /// `ensure` adds missing nullable columns and changes nothing else; without it, the table becomes
        /// as defined.
        mode: Option<DefinitionMode> = optional(choice([("ensure", DefinitionMode::Ensure)])),
    }
}

impl From<DefineColumnBody> for ColumnDefinition {
    fn from(body: DefineColumnBody) -> Self {
        Self {
            name: body.name,
            data_type: body.data_type,
            description: body.description,
            label: body.label,
            unit: body.unit,
            is_nullable: body.is_nullable,
            is_unique: body.is_unique,
            is_primary_key: body.is_primary_key,
            default: body.default,
            references: body.references,
            renamed_from: body.renamed_from,
        }
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "define_table",
        method: Method::Put,
        path: "/api/v1/tables/{name}",
        tag: Tag::Tables,
        summary: "Create or change a table",
        description: "Idempotent: the same definition again changes nothing. New nullable columns are added, \
            columns with `renamed_from` renamed, and types changed where every stored value converts exactly: \
            integers to floats, dates to datetimes, everything to text. What would lose or contradict stored \
            data is refused. Needs the admin scope.\n\n\
            With `mode=ensure`, as a script sends it at its start, missing columns are added and nothing else \
            changes: the table may have further columns and stricter rules, while another type or looser rules \
            than asked are refused. Needs the write scope, or admin where \
            `LABDATA_WRITERS_DEFINE_TABLES` is false.",
        returns: "The table as it stands",
        refusals: &[(
            403,
            "The API key lacks the admin scope; with `mode=ensure` the write scope, or writers may not \
             define tables here, or the caller may not write the table",
        )],
    }
    .runs(run)
    .scoped_by(scope)
}

fn scope(services: &Services, query: &Value) -> Scope {
    // An unknown mode is a problem of the query string, which who may use a mode learns.
    let mode = match query.get("mode") {
        Some(_) => DefinitionMode::Ensure,
        None => DefinitionMode::Exact,
    };
    required_scope(services, mode)
}

async fn run(
    call: Call<AnyScope, JsonBody<DefineTableBody>, DefineTableQuery, TablePath>,
) -> Result<TableView, Error> {
    let definition = TableDefinition {
        name: call.path.name,
        renamed_from: call.body.renamed_from,
        mode: call.query.mode.unwrap_or_default(),
        description: call.body.description,
        category: call.body.semantic_category,
        columns: call.body.columns,
        unique_together: call.body.unique_together,
        history: call.body.history,
        access: call.body.access,
    };
    let defined = define_table(&call.services, &call.actor, &definition).await?;
    Ok(defined.table.as_ref().into())
}
