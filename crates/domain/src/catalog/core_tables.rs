//! Tables that every organization has (contract §5).

use super::{
    Column,
    generated_key::generated_key,
    table::{Origin, SemanticCategory, Table},
};
use crate::scalar::DataType;

/// Core table of what readers find in the files of instruments.
pub const INSTRUMENT_MEASUREMENT: &str = "instrument_measurement";

/// Raw core table of the curves of [`INSTRUMENT_MEASUREMENT`].
pub const INSTRUMENT_CURVE: &str = "instrument_curve";

/// The core tables: experiment, carrier, operation, and those to which readers of files write.
#[must_use]
pub fn core_tables() -> Vec<Table> {
    let mut tables = laboratory_tables();
    tables.extend([instrument_measurement(), instrument_curve()]);
    tables
}

fn instrument_measurement() -> Table {
    use DataType::{Datetime, Float, Json, String, Text, Uuid};
    table(
        INSTRUMENT_MEASUREMENT,
        "A value or a curve that an instrument measured, as its file has it.",
        vec![
            required_unique(
                "key",
                "Content and position of the file: what is read again has the same.",
            ),
            column("file_id", Uuid, "The file."),
            column("instrument_id", Uuid, "The instrument of the file."),
            column("device", String, "The device that the file names."),
            column(
                "vendor",
                String,
                "The vendor or the software that the file names.",
            ),
            column("method", Text, "The method or protocol."),
            column("kind", String, "What was measured, such as absorbance."),
            column("sample", String, "The sample, as the file names it."),
            reference("carrier", "The plate, where a carrier of that name exists."),
            column("well", String, "The well."),
            column(
                "value",
                Float,
                "The value; null for a curve, and where the file has no number.",
            ),
            column(
                "unit",
                String,
                "Unit of the value, or of the values of the curve.",
            ),
            column(
                "wavelength_nm",
                Float,
                "Wavelength of the detector, in nanometers.",
            ),
            column("measured_at", Datetime, "When it was measured."),
            column("x_name", String, "What the positions of the curve are."),
            column("x_unit", String, "Unit of the positions."),
            column("y_name", String, "What the values of the curve are."),
            column("y_unit", String, "Unit of the values of the curve."),
            column(
                "metadata",
                Json,
                "Reader, plate, role, and why a value is null.",
            ),
        ],
    )
}

fn instrument_curve() -> Table {
    Table {
        name: INSTRUMENT_CURVE.to_owned(),
        description: Some("Points of the curves that instruments measured.".to_owned()),
        category: SemanticCategory::Raw,
        columns: vec![
            Column {
                is_nullable: false,
                ..reference(INSTRUMENT_MEASUREMENT, "The measurement.")
            },
            column("order", DataType::Integer, "Number of the point, from 0."),
            column("x", DataType::Float, "Position."),
            column(
                "y",
                DataType::Float,
                "Value; null where the file has no number.",
            ),
        ]
        .into(),
        ..table("", "", Vec::new())
    }
}

fn laboratory_tables() -> Vec<Table> {
    vec![
        table(
            "experiment",
            "A planned series of operations that answers a question.",
            vec![
                required_unique("name", "The experiment's name."),
                column("description", DataType::Text, "What it is about."),
                column(
                    "status",
                    DataType::String,
                    "Where it stands, in the lab's own words.",
                ),
                column("started_at", DataType::Datetime, "When it began."),
                column("metadata", DataType::Json, "Anything else."),
            ],
        ),
        table(
            "carrier",
            "A thing that holds samples: a plate, a tube rack, a box.",
            vec![
                required_unique("name", "The carrier's name."),
                column(
                    "carrier_type",
                    DataType::String,
                    "Its kind, such as a 96-well plate.",
                ),
                Column {
                    is_unique: true,
                    ..column("barcode", DataType::String, "Its barcode.")
                },
                column("metadata", DataType::Json, "Anything else."),
            ],
        ),
        table(
            "operation",
            "Something done at a time: a measurement, a transfer, an incubation.",
            vec![
                Column {
                    is_nullable: false,
                    ..column("name", DataType::String, "The operation's name.")
                },
                column("operation_type", DataType::String, "Its kind."),
                reference("experiment", "The experiment of which it is a part."),
                reference("carrier", "The carrier on which it was done."),
                column(
                    "instrument_id",
                    DataType::Uuid,
                    "The instrument that did it.",
                ),
                column("performed_at", DataType::Datetime, "When it was done."),
                column("parameters", DataType::Json, "How it was done."),
            ],
        ),
    ]
}

fn table(name: &str, description: &str, mut columns: Vec<Column>) -> Table {
    columns.insert(0, generated_key());
    Table {
        id: None,
        name: name.to_owned(),
        description: Some(description.to_owned()),
        category: SemanticCategory::Curated,
        origin: Origin::Core,
        columns: columns.into(),
        unique_together: Vec::new(),
        history: true,
        access: super::access::TableAccess::default(),
    }
}

fn column(name: &str, data_type: DataType, description: &str) -> Column {
    Column {
        id: None,
        name: name.to_owned(),
        description: Some(description.to_owned()),
        label: None,
        unit: None,
        data_type,
        is_primary_key: false,
        is_nullable: true,
        is_unique: false,
        default: None,
        references: None,
    }
}

fn required_unique(name: &str, description: &str) -> Column {
    Column {
        is_nullable: false,
        is_unique: true,
        ..column(name, DataType::String, description)
    }
}

fn reference(name: &str, description: &str) -> Column {
    Column {
        references: Some(name.to_owned()),
        ..column(name, DataType::String, description)
    }
}
