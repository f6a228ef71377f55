//! The facts of an operation that its types do not state.

/// Method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// GET, and HEAD with it.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl Method {
    /// Its name in HTTP.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// The facts of an operation that its types do not state.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name, unique: `operationId`, the name of the tool.
    pub name: &'static str,
    /// Its method.
    pub method: Method,
    /// The path's pattern, such as `/api/v1/api-keys/{api_key_id}`.
    pub path: &'static str,
    /// The part of the API that it belongs to.
    pub tag: Tag,
    /// One line.
    pub summary: &'static str,
    /// Further paragraphs.
    pub description: &'static str,
    /// Description of the response.
    pub returns: &'static str,
    /// Statuses with a description of when they come, besides those that every operation has, or in
    /// their place.
    pub refusals: &'static [(u16, &'static str)],
}

macro_rules! tags {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+) => {
        /// A part of the API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Tag {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Tag {
            /// All, in the order of the document.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name in the document.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// Its description.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

tags! {
    /// Files of instruments and of jobs: upload, list, read.
    Files = "files",
    /// Instruments that files come from.
    Instruments = "instruments",
    /// Annotations of images: masks with labels.
    Images = "images",
    /// Tables of the organization: define, change, import, export.
    Tables = "tables",
    /// Transactional writes of rows and series.
    Data = "data",
    /// Reading: schema, rows, series, SQL.
    Tools = "tools",
    /// Python scripts on the platform, and what starts them.
    Jobs = "jobs",
    /// Runs of jobs, and scripts that run elsewhere: logs, changes, revert.
    JobExecutions = "job-executions",
    /// Immutable snapshots of data to train models with.
    Datasets = "datasets",
    /// Training of models, and predictions.
    MlModels = "ml-models",
    /// The data-analysis agent, and its tools over MCP.
    Agent = "agent",
    /// Messages to the caller's inbox and e-mail.
    Notifications = "notifications",
    /// Stream of what happens in the organization.
    Events = "events",
    /// Deleted files, tables and columns.
    Trash = "trash",
    /// PostgreSQL for people's own tools.
    SqlLogins = "sql-logins",
    /// Views of the console under a name.
    SavedViews = "saved-views",
    /// Addresses to which events are sent.
    Webhooks = "webhooks",
    /// Record of who did what in the organization.
    Audit = "audit",
    /// People who sign in with a browser.
    Session = "session",
    /// Users of the organization, and the caller.
    Users = "users",
    /// Groups of users, by which tables are opened to some only.
    Groups = "groups",
    /// API keys of the organization.
    ApiKeys = "api-keys",
    /// Health, metrics and this document.
    Operations = "operations",
}
