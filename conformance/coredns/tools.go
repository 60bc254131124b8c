//go:build tools

// Package coredns names the real CoreDNS that is built from this module.
package coredns

import _ "github.com/coredns/coredns"
