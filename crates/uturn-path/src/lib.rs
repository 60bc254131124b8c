//! uturn-path
