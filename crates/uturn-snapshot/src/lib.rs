//! uturn-snapshot
