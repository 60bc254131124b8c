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
		{proto: unix.IPPROTO_TCP}, {proto: unix.IPPROTO_UDP}, {proto: unix.IPPROTO_ICMP},
		{proto: unix.IPPROTO_TCP, v6: true}, {proto: unix.IPPROTO_UDP, v6: true},
		{proto: unix.IPPROTO_ICMPV6, v6: true},
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

// send sends a probe and gives all that is then seen of it.
func (taps *Taps) send(probe Probe, tag uint32) ([]Seen, error) {
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
	seen := []Seen{}
	mine := Mine{proto: probe.Proto, tag: tag}
	if probe.In != "" {
		fd, known := taps.tuns[probe.In]
		if !known {
			return nil, fmt.Errorf("no interface %q", probe.In)
		}
		if _, err := unix.Write(fd, packet(probe.Proto, src, dst, tag)); err != nil {
			return nil, fmt.Errorf("%s: %w", probe.In, err)
		}
	} else {
		sender, said, err := call(probe.Proto, dst, tag)
		if err != nil {
			return nil, err
		}
		defer unix.Close(sender)
		if said != nil {
			seen = append(seen, Seen{How: "error", Error: said.Error()})
		}
		mine.fromHere = true
		mine.port = localPort(sender)
	}
	// Three, since what is handed over lo may cause more that goes over lo.
	for range 3 {
		if err := taps.awaitMarker(&seen, &mine); err != nil {
			return nil, err
		}
	}
	return seen, nil
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

// call sends as a process of the node does: through a connected socket.
func call(proto string, dst netip.AddrPort, tag uint32) (fd int, said, err error) {
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	if dst.Addr().Is6() {
		family = unix.AF_INET6
	}
	if proto == "udp" {
		kind = unix.SOCK_DGRAM
	}
	fd, err = unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	var to unix.Sockaddr
	if dst.Addr().Is6() {
		to = &unix.SockaddrInet6{Addr: dst.Addr().As16(), Port: int(dst.Port())}
	} else {
		to = &unix.SockaddrInet4{Addr: dst.Addr().As4(), Port: int(dst.Port())}
	}
	said = unix.Connect(fd, to)
	if errors.Is(said, unix.EINPROGRESS) {
		said = nil
	}
	if said == nil && proto == "udp" {
		_, said = unix.Write(fd, payload(tag))
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
