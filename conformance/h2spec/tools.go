//go:build tools

// Package h2spec names the program that holds servers against RFC 9113 and RFC 7541.
package h2spec

import (
	_ "github.com/summerwind/h2spec/cmd/h2spec"
)
