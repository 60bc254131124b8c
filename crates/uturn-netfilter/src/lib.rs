//! uturn-netfilter
