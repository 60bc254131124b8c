//go:build tools

// Package proxy names the real kube-proxy that is built from this module.
package proxy

import _ "k8s.io/kubernetes/cmd/kube-proxy"
