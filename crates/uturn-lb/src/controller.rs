//! What controllers make of a cluster.
