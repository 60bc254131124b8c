//! Runs whole commands as a user would, from the root of the tree.

pub(crate) use uturn_testing::commands::{
    Folder, assert_begins, assert_found, assert_has, assert_printed, root, run, transcript, uturn,
};
