// Command objects puts objects into an API server.
//
//	objects ready           waits until the server answers
//	objects replace < LIST  removes what was put there, then adds
//	objects add < LIST      adds a List of objects, status and all
//	objects relabel < LIST  gives the Nodes of a List the labels that it says
//	objects synced URL...   waits until the kube-proxies with these metrics are in step
//	objects key             prints a new private key for the server
//
// The variables SERVER and TOKEN say which server and who asks.
//
// replace prints, as a List, what the server keeps of its own (the Service "kubernetes").
// What the server refuses is said, with the object, and ends the program with 1.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Object is any object.
type Object map[string]any

// List is kubectl's List.
type List struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Items      []Object `json:"items"`
}

// Where objects of a kind are: kinds that must be there first stand first.
var places = []struct{ kind, path, plural string }{
	{"Namespace", "/api/v1", "namespaces"},
	{"Node", "/api/v1", "nodes"},
	{"Service", "/api/v1", "services"},
	{"EndpointSlice", "/apis/discovery.k8s.io/v1", "endpointslices"},
}

type server struct {
	url, token string
	client     http.Client
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: objects ready|replace|add|relabel|synced URL...|key")
		os.Exit(2)
	}
	// The server makes a certificate of its own at each start; the connection is local.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	s := server{os.Getenv("SERVER"), os.Getenv("TOKEN"), http.Client{Transport: transport, Timeout: 10 * time.Second}}
	if err := s.run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "objects:", err)
		os.Exit(1)
	}
}

func (s *server) run(word string, urls []string) error {
	switch word {
	case "ready":
		return s.ready()
	case "synced":
		return synced(urls)
	case "key":
		return printKey()
	case "replace", "add", "relabel":
	default:
		return fmt.Errorf("%q is no word of ours", word)
	}
	var list List
	if err := json.NewDecoder(os.Stdin).Decode(&list); err != nil {
		return err
	}
	if word == "relabel" {
		return s.relabel(list.Items)
	}
	if word == "replace" {
		if err := s.remove(); err != nil {
			return err
		}
	}
	for _, place := range places {
		for _, object := range list.Items {
			if object["kind"] == place.kind {
				if err := s.add(place.path, place.plural, object); err != nil {
					return err
				}
			}
		}
	}
	if word == "replace" {
		return s.printOwn()
	}
	return nil
}

// ready asks until the server answers, and has its own Service.
func (s *server) ready() error {
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, last = s.ask("GET", "/readyz", nil); last != nil {
			continue
		}
		if _, last = s.ask("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", nil); last == nil {
			return nil
		}
	}
	return fmt.Errorf("not ready after a minute: %w", last)
}

func (s *server) remove() error {
	for _, place := range places[1:] {
		var list List
		if err := s.get(place.path+"/"+place.plural, &list); err != nil {
			return err
		}
		for _, object := range list.Items {
			if namespace(object) == "default" {
				continue
			}
			path := within(place.path, place.plural, object) + "/" + name(object)
			if _, err := s.ask("DELETE", path, Object{"gracePeriodSeconds": 0}); err != nil {
				return err
			}
		}
	}
	return nil
}

// add creates an object and then says its status, which a creation leaves out.
func (s *server) add(path, plural string, object Object) error {
	at := within(path, plural, object)
	answer, err := s.ask("POST", at, object)
	if plural == "namespaces" && conflict(err) {
		return nil
	}
	if err != nil {
		return err
	}
	status, stated := object["status"]
	if !stated {
		return nil
	}
	var made Object
	if err := json.Unmarshal(answer, &made); err != nil {
		return err
	}
	made["status"] = status
	_, err = s.ask("PUT", at+"/"+name(object)+"/status", made)
	return err
}

func (s *server) relabel(items []Object) error {
	for _, item := range items {
		if item["kind"] != "Node" {
			continue
		}
		labels := item["metadata"].(map[string]any)["labels"]
		patch := []Object{{"op": "add", "path": "/metadata/labels", "value": labels}}
		if _, err := s.ask("PATCH", "/api/v1/nodes/"+name(item), patch); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) printOwn() error {
	own := List{"v1", "List", nil}
	for _, path := range []string{
		"/api/v1/namespaces/default/services/kubernetes",
		"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
	} {
		var object Object
		if err := s.get(path, &object); err != nil {
			return err
		}
		own.Items = append(own.Items, object)
	}
	return json.NewEncoder(os.Stdout).Encode(own)
}

func (s *server) get(path string, into any) error {
	answer, err := s.ask("GET", path, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

type refusal struct {
	code int
	text string
}

func (r refusal) Error() string { return r.text }

func conflict(err error) bool {
	r, is := err.(refusal)
	return is && r.code == http.StatusConflict
}

func (s *server) ask(method, path string, body any) ([]byte, error) {
	data := []byte{}
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequest(method, s.url+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	if method == "PATCH" {
		request.Header.Set("Content-Type", "application/json-patch+json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, refusal{response.StatusCode, fmt.Sprintf("%s %s: %s: %s\nof %s", method, path, response.Status, answer, data)}
	}
	return answer, nil
}

func within(path, plural string, object Object) string {
	if plural == "namespaces" || plural == "nodes" {
		return path + "/" + plural
	}
	return path + "/namespaces/" + namespace(object) + "/" + plural
}

func name(object Object) string { return text(object, "name") }

func namespace(object Object) string { return text(object, "namespace") }

func text(object Object, field string) string {
	meta, _ := object["metadata"].(map[string]any)
	value, _ := meta[field].(string)
	return value
}
