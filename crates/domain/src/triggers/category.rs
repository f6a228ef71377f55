//! Kinds of triggers.

/// Kind of trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Fires when the bytes of a file are confirmed.
    FileUploaded,
    /// Fires when an execution of another job ends.
    JobCompleted,
    /// Fires at times.
    Schedule,
}

impl Category {
    /// Every category and its name in the API.
    pub const ALL: [(&'static str, Self); 3] = [
        ("file_uploaded", Self::FileUploaded),
        ("job_completed", Self::JobCompleted),
        ("schedule", Self::Schedule),
    ];

    /// Its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileUploaded => "file_uploaded",
            Self::JobCompleted => "job_completed",
            Self::Schedule => "schedule",
        }
    }

    /// The category of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, category)| category)
    }
}
