//! `explain -o json`.

use serde::Serialize;
use uturn_diagnose::{Code, pages};
use uturn_model::Mechanism;

use super::common::Severity;

/// What `uturn explain -o json` prints: the page of a word, or every code and mechanism.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explained {
    /// The codes: all, or the one that is asked for.
    pub codes: Vec<ExplainedCode>,
    /// The mechanisms: all, or the one that is asked for.
    pub mechanisms: Vec<&'static str>,
    /// The page as Markdown; null where all are listed.
    pub page: Option<&'static str>,
}

/// The code of findings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainedCode {
    /// The code.
    pub code: String,
    /// What it means, in a few words.
    pub title: &'static str,
    /// How bad its findings are at most.
    pub severity: Severity,
    /// The mechanisms that it stands for.
    pub mechanisms: Vec<&'static str>,
}

impl Explained {
    /// Lists all codes and mechanisms.
    pub fn all() -> Self {
        Self {
            codes: Code::all().map(ExplainedCode::from).collect(),
            mechanisms: Mechanism::ALL.iter().map(|mechanism| mechanism.as_str()).collect(),
            page: None,
        }
    }

    /// Returns the page of a code or mechanism; `None` for other words.
    pub fn of(word: &str) -> Option<Self> {
        let page = pages::find(word)?;
        let codes = word.parse::<Code>().ok().map(ExplainedCode::from);
        let mechanism = Mechanism::ALL.iter().find(|own| own.as_str() == word);
        Some(Self {
            codes: codes.into_iter().collect(),
            mechanisms: mechanism.map(|own| own.as_str()).into_iter().collect(),
            page: Some(page),
        })
    }
}

impl From<Code> for ExplainedCode {
    fn from(code: Code) -> Self {
        Self {
            code: code.to_string(),
            title: code.title(),
            severity: code.severity().into(),
            mechanisms: code.mechanisms().iter().map(|own| own.as_str()).collect(),
        }
    }
}
