//go:build tools

// Package kuberouter names the real program that enforces NetworkPolicies on a cluster in a box.
package kuberouter

import (
	_ "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"
)
