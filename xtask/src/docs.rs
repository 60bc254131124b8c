//! `docs`: writes the generated parts of the pages anew. Tests compare these parts with what the
//! program prints and with its types; here the same tests write them.

use uturn_testing::variables;

use crate::Outcome;
use crate::shell::{self, Failure};

/// The modules of the tests that compare pages, and the published schemas.
const TESTS: [&str; 2] = ["docs::", "schema::published"];

/// Runs the tests that write what differs.
pub(crate) fn run() -> Result<Outcome, Failure> {
    let mut tests = shell::cargo(&["test", "--workspace", "--test", "cli", "--"]);
    shell::run(tests.args(TESTS).env(variables::DOCS, variables::UPDATE))?;
    Ok(Outcome::Complete)
}
