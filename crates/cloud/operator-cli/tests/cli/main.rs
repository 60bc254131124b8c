//! Whole commands of `uturn operator`: exit status, stdout and stderr, as a user gets them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod operator;
