//! Tables of the platform itself that `tools/read` shows; read only.

use crate::scalar::DataType;

/// A readable platform table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlatformTable {
    /// The organization's own tables.
    Table,
    /// Jobs.
    Job,
    /// Executions of jobs.
    JobExecution,
    /// Confirmed source files.
    File,
    /// Instruments.
    Instrument,
    /// Trained models.
    MlModel,
    /// Datasets.
    Dataset,
    /// Members of the organization.
    OrganizationMember,
}

/// A column of a platform table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlatformColumn {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub data_type: DataType,
}

const fn column(name: &'static str, data_type: DataType) -> PlatformColumn {
    PlatformColumn { name, data_type }
}

/// Columns of `job_execution`.
const JOB_EXECUTION: &[PlatformColumn] = &[
    column("id", DataType::Uuid),
    column("job_id", DataType::Uuid),
    column("job_name", DataType::String),
    column("status", DataType::String),
    column("started_at", DataType::Datetime),
    column("completed_at", DataType::Datetime),
    column("created_at", DataType::Datetime),
    column("script_version", DataType::Integer),
    column("trigger_file_id", DataType::Uuid),
];

impl PlatformTable {
    /// Every platform table.
    pub const ALL: [Self; 8] = [
        Self::Table,
        Self::Job,
        Self::JobExecution,
        Self::File,
        Self::Instrument,
        Self::MlModel,
        Self::Dataset,
        Self::OrganizationMember,
    ];

    /// The name by which it is read. No table of an organization may bear it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Job => "job",
            Self::JobExecution => "job_execution",
            Self::File => "file",
            Self::Instrument => "instrument",
            Self::MlModel => "ml_model",
            Self::Dataset => "dataset",
            Self::OrganizationMember => "organizationmember",
        }
    }

    /// The table of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.as_str() == name)
    }

    /// Its columns; the first one is its key, `id`.
    #[must_use]
    pub const fn columns(self) -> &'static [PlatformColumn] {
        use DataType::{Boolean, Datetime, Integer, String, Text, Uuid};
        match self {
            Self::Table => {
                const {
                    &[
                        column("id", Integer),
                        column("name", String),
                        column("semantic_category", String),
                    ]
                }
            }
            Self::Job => {
                const {
                    &[
                        column("id", Uuid),
                        column("name", String),
                        column("description", Text),
                        column("archived", Boolean),
                        column("created_at", Datetime),
                    ]
                }
            }
            Self::JobExecution => JOB_EXECUTION,
            Self::File => {
                const {
                    &[
                        column("id", Uuid),
                        column("file_name", String),
                        column("original_path", String),
                        column("content_type", String),
                        column("source_type", String),
                        column("source_instrument_id", Uuid),
                        column("job_execution_id", Uuid),
                        column("size_kilobytes", Integer),
                        column("crc32c_hash", String),
                        column("uploaded_at", Datetime),
                    ]
                }
            }
            Self::Instrument => {
                const {
                    &[
                        column("id", Uuid),
                        column("name", String),
                        column("description", Text),
                        column("instrument_type", String),
                        column("created_at", Datetime),
                    ]
                }
            }
            // A row per model, with its newest version.
            Self::MlModel => {
                const {
                    &[
                        column("id", Uuid),
                        column("name", String),
                        column("task_type", String),
                        column("problem_type", String),
                        column("target_column", String),
                        column("dataset_id", Uuid),
                        column("version_number", Integer),
                        column("active_version_number", Integer),
                        column("status", String),
                        column("archived", Boolean),
                        column("created_at", Datetime),
                    ]
                }
            }
            Self::Dataset => {
                const {
                    &[
                        column("id", Uuid),
                        column("name", String),
                        column("description", Text),
                        column("row_count", Integer),
                        column("created_at", Datetime),
                    ]
                }
            }
            Self::OrganizationMember => {
                const {
                    &[
                        column("id", Uuid),
                        column("email", String),
                        column("name", String),
                    ]
                }
            }
        }
    }
}
