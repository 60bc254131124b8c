//go:build tools

// Package controllers names the real programs that a cluster in a box runs beside the API
// server, and the one that its stories are played with.
package controllers

import (
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
