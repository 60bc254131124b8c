package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// synced waits until every kube-proxy says that it has programmed the rules at least once
// and that it did so after the last request to do so.
func synced(urls []string) error {
	for _, url := range urls {
		var last error
		end := time.Now().Add(5 * time.Minute)
		for pause := 50 * time.Millisecond; ; pause = min(2*pause, 400*time.Millisecond) {
			if last = inStep(url); last == nil {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("%s: not in step after five minutes: %w", url, last)
			}
			time.Sleep(pause)
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
	// What is in braces names the family: each is asked to, and does it, at its own time.
	synced, queued := map[string]float64{}, map[string]float64{}
	for _, line := range strings.Split(string(text), "\n") {
		name, value, _ := strings.Cut(line, " ")
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		name, family, _ := strings.Cut(name, "{")
		switch name {
		case "kubeproxy_sync_proxy_rules_last_timestamp_seconds":
			synced[family] = number
		case "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds":
			queued[family] = number
		}
	}
	if len(queued) == 0 {
		return errors.New("it does not say when it was asked to")
	}
	for family, asked := range queued {
		if last := synced[family]; last <= 0 || last < asked {
			return fmt.Errorf("{%s last synced at %f, asked to at %f", family, last, asked)
		}
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
