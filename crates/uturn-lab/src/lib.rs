//! uturn-lab
