package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// synced waits until every kube-proxy says that it has programmed the rules at least once
// and that it did so after the last time somebody asked it to.
func synced(urls []string) error {
	for _, url := range urls {
		var last error
		end := time.Now().Add(time.Minute)
		for {
			if last = inStep(url); last == nil {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("%s: not in step after a minute: %w", url, last)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// inStep is nil when kube-proxy is.
func inStep(url string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	// With two families there may be a line for each: the oldest sync counts.
	synced, queued := -1.0, 0.0
	for _, line := range strings.Split(string(text), "\n") {
		name, value, _ := strings.Cut(line, " ")
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		switch name {
		case "kubeproxy_sync_proxy_rules_last_timestamp_seconds":
			if synced < 0 || number < synced {
				synced = number
			}
		case "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds":
			queued = max(queued, number)
		}
	}
	if synced <= 0 || synced < queued {
		return fmt.Errorf("last synced at %f, asked to at %f", synced, queued)
	}
	return nil
}

// printKey prints what the API server would sign tokens of service accounts with.
func printKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return pem.Encode(os.Stdout, &pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}
