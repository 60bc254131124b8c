//! uturn-kubeproxy
