//! `PUT /api/v1/tables/{name}`

use actix_web::web::Json;
use labdata_application::catalog::define_table::define_table;
use labdata_domain::{
    catalog::{ColumnDefinition, SemanticCategory, TableDefinition},
    scalar::DataType,
};
use serde_json::Value;
use utoipa::ToSchema;

use super::table_view::TableView;
use crate::http::{
    Admin, Answer, Call, JsonBody,
    shape::{
        Fields, Place, Shape,
        readers::{any, boolean, choice, list, shape, storable, text},
    },
};

/// A table as it shall be.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documents the body, which is read field by field")]
pub struct DefineTableBody {
    /// What it holds.
    description: Option<String>,
    /// `curated` for rows, `raw` for series of points.
    #[schema(value_type = String, example = "curated")]
    semantic_category: SemanticCategory,
    /// Its columns. A curated table gets an `id` unless a column is the primary key.
    columns: Vec<DefineColumnBody>,
    /// Sets of columns whose values together may occur once.
    unique_together: Option<Vec<Vec<String>>>,
}

/// A column as it shall be.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documents the body, which is read field by field")]
pub struct DefineColumnBody {
    /// Its name: a lower-case letter, then at most 62 lower-case letters, digits or underscores.
    name: String,
    /// Its type; of a reference, the type of the other table's primary key.
    #[schema(value_type = String, example = "string")]
    data_type: DataType,
    /// What it holds.
    description: Option<String>,
    /// Whether it may be null; true unless given.
    is_nullable: Option<bool>,
    /// Whether no two rows may have the same value.
    is_unique: Option<bool>,
    /// Whether it is the primary key, in place of the generated `id`.
    is_primary_key: Option<bool>,
    /// The value of a created row that gives none.
    default: Option<Value>,
    /// The table whose row it points at.
    references: Option<String>,
}

const CATEGORIES: [(&str, SemanticCategory); 2] = [
    ("curated", SemanticCategory::Curated),
    ("raw", SemanticCategory::Raw),
];

const DATA_TYPES: [(&str, DataType); 9] = [
    ("string", DataType::String),
    ("text", DataType::Text),
    ("integer", DataType::Integer),
    ("float", DataType::Float),
    ("boolean", DataType::Boolean),
    ("datetime", DataType::Datetime),
    ("date", DataType::Date),
    ("uuid", DataType::Uuid),
    ("json", DataType::Json),
];

/// A definition without the name, which the path gives.
#[derive(Debug)]
pub struct Definition {
    description: Option<String>,
    category: SemanticCategory,
    columns: Vec<Column>,
    unique_together: Vec<Vec<String>>,
}

impl Shape for Definition {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let description = fields.nullable("description", text(..));
        let category = fields.required("semantic_category", choice(&CATEGORIES));
        let columns = fields.required("columns", list(shape::<Column>()));
        let unique_together = fields.nullable("unique_together", list(list(text(..))));
        Some(Self {
            description: description?,
            category: category?,
            columns: columns?,
            unique_together: unique_together?.unwrap_or_default(),
        })
    }
}

#[derive(Debug)]
struct Column(ColumnDefinition);

impl Shape for Column {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let name = fields.required("name", text(..));
        let data_type = fields.required("data_type", choice(&DATA_TYPES));
        let description = fields.nullable("description", text(..));
        let is_nullable = fields.nullable("is_nullable", boolean());
        let is_unique = fields.nullable("is_unique", boolean());
        let is_primary_key = fields.nullable("is_primary_key", boolean());
        let default = fields.nullable("default", storable(any()));
        let references = fields.nullable("references", text(..));
        Some(Self(ColumnDefinition {
            name: name?,
            data_type: data_type?,
            description: description?,
            is_nullable: is_nullable?.unwrap_or(true),
            is_unique: is_unique?.unwrap_or(false),
            is_primary_key: is_primary_key?.unwrap_or(false),
            default: default?,
            references: references?,
        }))
    }
}

/// The table's name.
#[derive(Debug)]
pub struct TablePath {
    /// As the path gives it.
    pub name: String,
}

impl Shape for TablePath {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let name = Fields::of(value, place)?.required("name", text(..));
        Some(Self { name: name? })
    }
}

/// Create or change a table
///
/// Idempotent: the same definition again changes nothing. New nullable columns are added; what
/// would lose or contradict stored data is refused.
#[utoipa::path(
    put,
    path = "/api/v1/tables/{name}",
    tag = "tables",
    operation_id = "define_table",
    params(("name" = String, Path, description = "The table's name")),
    request_body = DefineTableBody,
    responses((status = 200, description = "The table as it stands", body = TableView))
)]
pub async fn handle(
    call: Call<Admin, JsonBody<Definition>, (), TablePath>,
) -> Answer<Json<TableView>> {
    let JsonBody(body) = &call.body;
    let definition = TableDefinition {
        name: call.path.name.clone(),
        description: body.description.clone(),
        category: body.category,
        columns: body.columns.iter().map(|column| column.0.clone()).collect(),
        unique_together: body.unique_together.clone(),
    };
    let defined = define_table(call.ports(), &call.actor, &definition).await?;
    Ok(Json(TableView::from(defined.table.as_ref())))
}
