//! Names and weights of the actions of the mix.

macro_rules! actions {
    ($($variant:ident = $name:literal * $weight:literal;)*) => {
        /// An action of the mix.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Action {
            $($variant,)*
        }

        impl Action {
            /// All actions.
            pub(crate) const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];

            /// Name in `--mix`.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Default weight.
            pub(crate) const fn weight(self) -> u64 {
                match self {
                    $(Self::$variant => $weight,)*
                }
            }
        }
    };
}

actions! {
    Insert = "insert" * 20;
    Transaction = "transaction" * 6;
    Update = "update" * 8;
    Upsert = "upsert" * 6;
    Delete = "delete" * 3;
    Series = "series" * 4;
    Import = "import" * 1;
    Execution = "execution" * 2;
    Revert = "revert" * 2;
    Read = "read" * 10;
    ReadSeries = "read-series" * 4;
    Query = "query" * 6;
    Export = "export" * 1;
    List = "list" * 8;
    Upload = "upload" * 5;
    SignedUpload = "signed-upload" * 4;
    Download = "download" * 4;
    DeleteFile = "delete-file" * 1;
    Notification = "notification" * 3;
    ApiKey = "api-key" * 1;
    Table = "table" * 1;
    Job = "job" * 1;
    Dataset = "dataset" * 1;
    Run = "run" * 2;
    Trigger = "trigger" * 2;
    Agent = "agent" * 1;
    Training = "training" * 1;
}
