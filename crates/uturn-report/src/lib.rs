//! uturn-report
