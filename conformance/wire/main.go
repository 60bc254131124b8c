// Command wire is all that is around one node: whatever its interfaces lead to.
//
// It runs in the node's network namespace and makes the interfaces named as its arguments
// (TUN devices: what a program writes to one comes in there, what the kernel sends out of
// it the program reads). Each line of its input is a packet to send, from outside or from
// the node itself; each line of its output says everything that became of it, and of the
// answer that its target then sends from where it arrived. Nothing is waited for by the
// clock: the kernel takes a packet from a TUN device all the way before the write returns,
// and packets over lo are done when a marker sent after them is back.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Probe is one line of input.
type Probe struct {
	// In names the interface it comes in through; empty: a process of the node sends it.
	In    string `json:"in"`
	Proto string `json:"proto"`
	Src   string `json:"src"`
	Sport uint16 `json:"sport"`
	Dst   string `json:"dst"`
	Dport uint16 `json:"dport"`
}

// Fate is one line of output: what became of a probe.
type Fate struct {
	// Port it was sent from.
	Port uint16 `json:"port"`
	Seen []Seen `json:"seen"`
	// Back is what became of the answer, if the probe arrived anywhere.
	Back []Seen `json:"back"`
}

// Seen is one thing that became of a packet.
type Seen struct {
	// How: "out" (of Dev), "local" (handed to a process), "icmp" (an error came back,
	// Kind and Code), "reset" (a TCP reset came back), "error" (the sender was told so).
	How   string `json:"how"`
	Dev   string `json:"dev,omitempty"`
	Src   string `json:"src,omitempty"`
	Dst   string `json:"dst,omitempty"`
	Sport uint16 `json:"sport,omitempty"`
	Dport uint16 `json:"dport,omitempty"`
	Kind  byte   `json:"kind,omitempty"`
	Code  byte   `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
	// Of a TCP packet.
	seq uint32
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wire:", err)
		os.Exit(1)
	}
}

func run(devices []string) error {
	// One CPU, so that what the loopback device queues stays in order.
	runtime.LockOSThread()
	stayOnOneCPU()
	taps, err := openAll(devices)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	fmt.Println("ready")

	in := bufio.NewScanner(os.Stdin)
	for tag := uint32(1); in.Scan(); tag++ {
		var probe Probe
		if err := json.Unmarshal(in.Bytes(), &probe); err != nil {
			return err
		}
		forgetRecent()
		fate, err := taps.send(probe, 0x75740000|tag&0xffff)
		if err != nil {
			return err
		}
		if err := out.Encode(fate); err != nil {
			return err
		}
	}
	return in.Err()
}

func stayOnOneCPU() {
	var allowed, one unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return
	}
	for cpu := 0; cpu < 1024; cpu++ {
		if allowed.IsSet(cpu) {
			one.Set(cpu)
			_ = unix.SchedSetaffinity(0, &one)
			return
		}
	}
}

// Every probe meets an empty memory of clients (iptables -m recent).
func forgetRecent() {
	lists, _ := filepath.Glob("/proc/thread-self/net/xt_recent/*")
	for _, list := range lists {
		_ = os.WriteFile(list, []byte("/"), 0)
	}
}
