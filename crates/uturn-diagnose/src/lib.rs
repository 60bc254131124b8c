//! uturn-diagnose
