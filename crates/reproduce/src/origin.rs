//! Whose a claim is.

/// Whose claim it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The paper says it.
    Paper,
    /// This project says it: about parts of its own, or to show the cause of a difference.
    Ours,
}

impl Origin {
    /// Both, in the order of tables.
    pub const ALL: [Self; 2] = [Self::Paper, Self::Ours];

    /// The word in files.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Ours => "ours",
        }
    }
}
