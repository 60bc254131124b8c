package main

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Taps are all the places where a packet can be met.
type Taps struct {
	tuns map[string]int
	// Copies of what the node's own processes are handed, and of ICMP that reaches it.
	raws []raw
	// Sends markers to itself over lo.
	marker int
	// Send whole packets, headers and all, as a process of the node: IPv4, IPv6.
	writers [2]int
}

type raw struct {
	fd, proto int
	v6        bool
}

var markerTo = &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 9}

func openAll(devices []string) (*Taps, error) {
	taps := &Taps{tuns: map[string]int{}}
	for _, device := range devices {
		fd, err := openTun(device)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", device, err)
		}
		taps.tuns[device] = fd
	}
	for _, one := range []raw{
		{proto: unix.IPPROTO_TCP}, {proto: unix.IPPROTO_UDP}, {proto: unix.IPPROTO_SCTP},
		{proto: unix.IPPROTO_ICMP},
		{proto: unix.IPPROTO_TCP, v6: true}, {proto: unix.IPPROTO_UDP, v6: true},
		{proto: unix.IPPROTO_SCTP, v6: true}, {proto: unix.IPPROTO_ICMPV6, v6: true},
	} {
		family := unix.AF_INET
		if one.v6 {
			family = unix.AF_INET6
		}
		fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, one.proto)
		if err != nil {
			return nil, fmt.Errorf("raw socket: %w", err)
		}
		if one.v6 {
			if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1); err != nil {
				return nil, err
			}
		}
		one.fd = fd
		taps.raws = append(taps.raws, one)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	taps.marker = fd
	for nth, family := range []int{unix.AF_INET, unix.AF_INET6} {
		fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return nil, fmt.Errorf("raw socket: %w", err)
		}
		taps.writers[nth] = fd
	}
	return taps, nil
}

func openTun(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	return fd, unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
}

// send sends a probe, lets its target answer, and gives all that is then seen of both.
func (taps *Taps) send(probe Probe, tag uint32) (*Fate, error) {
	if _, err := taps.drain(nil, nil); err != nil {
		return nil, err
	}
	src, err := endpoint(probe.Src, probe.Sport)
	if err != nil && probe.In != "" {
		return nil, err
	}
	dst, err := endpoint(probe.Dst, probe.Dport)
	if err != nil {
		return nil, err
	}
	fate := &Fate{Port: probe.Sport, Seen: []Seen{}, Back: []Seen{}}
	mine := Mine{proto: probe.Proto, tag: tag}
	if probe.In != "" {
		if err := taps.putIn(probe.In, request(probe.Proto, src, dst, tag)); err != nil {
			return nil, err
		}
	} else {
		sender, said, err := call(probe, dst, tag)
		if err != nil {
			return nil, err
		}
		defer unix.Close(sender)
		if said != nil {
			fate.Seen = append(fate.Seen, Seen{How: "error", Error: said.Error()})
		}
		mine.fromHere = true
		if probe.Proto != "sctp" {
			fate.Port = localPort(sender)
		}
		mine.port = fate.Port
	}
	if err := taps.collect(&fate.Seen, &mine); err != nil {
		return nil, err
	}
	return fate, taps.sendBack(fate, &mine)
}

// sendBack lets the place that the probe reached answer, and adds what became of the answer.
func (taps *Taps) sendBack(fate *Fate, mine *Mine) error {
	var arrived *Seen
	byKernel, seen := []Seen{}, []Seen{}
	for nth, one := range fate.Seen {
		if arrived == nil && (one.How == "out" || one.How == "local") {
			arrived = &fate.Seen[nth]
		}
		if one.How == "reset" || one.How == "kernel" {
			byKernel = append(byKernel, one)
		}
		if one.How != "kernel" {
			seen = append(seen, one)
		}
	}
	fate.Seen = seen
	if arrived == nil {
		return nil
	}
	if arrived.How == "local" && mine.proto == "tcp" {
		// The kernel has answered by itself, whether or not a process listens.
		for _, one := range byKernel {
			one.How = "out"
			if one.Dev == "" {
				one.How = "local"
			}
			fate.Back = append(fate.Back, one)
		}
		return nil
	}
	from, err := endpoint(arrived.Dst, arrived.Dport)
	if err != nil {
		return err
	}
	to, err := endpoint(arrived.Src, arrived.Sport)
	if err != nil {
		return err
	}
	packet := answer(mine.proto, from, to, mine.tag, arrived.seq)
	if arrived.How == "out" {
		err = taps.putIn(arrived.Dev, packet)
	} else if said := taps.write(packet, to.Addr()); said != nil {
		fate.Back = append(fate.Back, Seen{How: "error", Error: said.Error()})
	}
	if err != nil {
		return err
	}
	back := *mine
	back.answered = true
	return taps.collect(&fate.Back, &back)
}

func (taps *Taps) putIn(device string, packet []byte) error {
	fd, known := taps.tuns[device]
	if !known {
		return fmt.Errorf("no interface %q", device)
	}
	if _, err := unix.Write(fd, packet); err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	return nil
}

// write sends a whole packet as a process of the node.
func (taps *Taps) write(packet []byte, to netip.Addr) error {
	if to.Is6() {
		return unix.Sendto(taps.writers[1], packet, 0, &unix.SockaddrInet6{Addr: to.As16()})
	}
	return unix.Sendto(taps.writers[0], packet, 0, &unix.SockaddrInet4{Addr: to.As4()})
}

// collect gathers all that is seen until the node has nothing more to do.
func (taps *Taps) collect(seen *[]Seen, mine *Mine) error {
	// Three, since what is handed over lo may cause more that goes over lo.
	for range 3 {
		if err := taps.awaitMarker(seen, mine); err != nil {
			return err
		}
	}
	return nil
}

// awaitMarker sends a marker over lo and collects everything up to it.
func (taps *Taps) awaitMarker(seen *[]Seen, mine *Mine) error {
	if err := unix.Sendto(taps.marker, []byte("marker"), 0, markerTo); err != nil {
		return fmt.Errorf("marker: %w", err)
	}
	for {
		found, err := taps.drain(seen, mine)
		if err != nil || found {
			return err
		}
		var wait []unix.PollFd
		for _, one := range taps.raws {
			wait = append(wait, unix.PollFd{Fd: int32(one.fd), Events: unix.POLLIN})
		}
		n, err := unix.Poll(wait, 5000)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n == 0 {
			return errors.New("a packet to 127.0.0.1 did not arrive within 5 s")
		}
	}
}

// drain reads all that is there; whether a marker was among it.
func (taps *Taps) drain(seen *[]Seen, mine *Mine) (bool, error) {
	buffer := make([]byte, 65536)
	control := make([]byte, 256)
	marker := false
	for device, fd := range taps.tuns {
		for {
			n, err := unix.Read(fd, buffer)
			if err != nil {
				if errors.Is(err, unix.EAGAIN) {
					break
				}
				return false, fmt.Errorf("%s: %w", device, err)
			}
			if mine != nil {
				if one := mine.leaving(device, buffer[:n]); one != nil {
					*seen = append(*seen, *one)
				}
			}
		}
	}
	for _, one := range taps.raws {
		for {
			n, controls, _, from, err := unix.Recvmsg(one.fd, buffer, control, 0)
			if err != nil {
				if errors.Is(err, unix.EAGAIN) {
					break
				}
				return false, err
			}
			var arrived *Arrived
			if one.v6 {
				arrived = arrivedV6(byte(one.proto), buffer[:n], control[:controls], from)
			} else {
				arrived = parse(buffer[:n])
			}
			if arrived == nil {
				continue
			}
			if arrived.isMarker() {
				marker = true
			} else if mine != nil {
				if s := mine.handed(arrived); s != nil {
					*seen = append(*seen, *s)
				}
			}
		}
	}
	return marker, nil
}

// call sends as a process of the node does: through a connected socket. There may be no
// SCTP sockets, so SCTP goes through a raw one.
func call(probe Probe, dst netip.AddrPort, tag uint32) (fd int, said, err error) {
	family, kind, number := unix.AF_INET, unix.SOCK_STREAM, 0
	if dst.Addr().Is6() {
		family = unix.AF_INET6
	}
	port := int(dst.Port())
	switch probe.Proto {
	case "udp":
		kind = unix.SOCK_DGRAM
	case "sctp":
		kind, number, port = unix.SOCK_RAW, unix.IPPROTO_SCTP, 0
	}
	fd, err = unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, number)
	if err != nil {
		return 0, nil, err
	}
	var to unix.Sockaddr
	if dst.Addr().Is6() {
		to = &unix.SockaddrInet6{Addr: dst.Addr().As16(), Port: port}
	} else {
		to = &unix.SockaddrInet4{Addr: dst.Addr().As4(), Port: port}
	}
	said = unix.Connect(fd, to)
	if errors.Is(said, unix.EINPROGRESS) {
		said = nil
	}
	if said != nil {
		return fd, said, nil
	}
	switch probe.Proto {
	case "udp":
		_, said = unix.Write(fd, payload(tag))
	case "sctp":
		body := chunk(chunkInit, 0, tag)
		fill("sctp", netip.AddrPortFrom(dst.Addr(), probe.Sport), dst, body)
		_, said = unix.Write(fd, body)
	}
	return fd, said, nil
}

func localPort(fd int) uint16 {
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0
	}
	switch one := address.(type) {
	case *unix.SockaddrInet4:
		return uint16(one.Port)
	case *unix.SockaddrInet6:
		return uint16(one.Port)
	}
	return 0
}

func endpoint(address string, port uint16) (netip.AddrPort, error) {
	ip, err := netip.ParseAddr(address)
	return netip.AddrPortFrom(ip, port), err
}
