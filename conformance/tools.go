//go:build tools

// Package conformance names the real programs that the conformance stage builds beside its
// own (etcd, objects, wire).
package conformance

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
