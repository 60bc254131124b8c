package main

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Mine tells a probe and what answers it from everything else.
type Mine struct {
	proto string
	// In the sequence number of a TCP packet, in the payload of a UDP packet, in the first
	// chunk of an SCTP packet.
	tag uint32
	// Not the probe itself is looked for, but the answer that was sent to it.
	answered bool
	// The kernel chose the sequence number: told by the SYN alone, errors by the port.
	fromHere bool
	port     uint16
}

// Arrived is a packet taken apart.
type Arrived struct {
	src, dst netip.Addr
	proto    byte
	body     []byte
}

// parse takes a packet apart; nil where it is none we could know.
func parse(data []byte) *Arrived {
	if len(data) < 20 {
		return nil
	}
	if data[0]>>4 == 4 {
		head := int(data[0]&15) * 4
		if len(data) < head {
			return nil
		}
		src, _ := netip.AddrFromSlice(data[12:16])
		dst, _ := netip.AddrFromSlice(data[16:20])
		return &Arrived{src, dst, data[9], data[head:]}
	}
	if data[0]>>4 != 6 || len(data) < 40 {
		return nil
	}
	src, _ := netip.AddrFromSlice(data[8:24])
	dst, _ := netip.AddrFromSlice(data[24:40])
	return &Arrived{src, dst, data[6], data[40:]}
}

// arrivedV6 is what a raw IPv6 socket gives, which leaves the header out.
func arrivedV6(proto byte, body, control []byte, from unix.Sockaddr) *Arrived {
	sender, ok := from.(*unix.SockaddrInet6)
	if !ok {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for _, one := range messages {
		if one.Header.Type == unix.IPV6_PKTINFO && len(one.Data) >= 16 {
			dst, _ := netip.AddrFromSlice(one.Data[:16])
			return &Arrived{netip.AddrFrom16(sender.Addr), dst, proto, body}
		}
	}
	return nil
}

func (a *Arrived) isMarker() bool {
	return a.proto == unix.IPPROTO_UDP && len(a.body) == 14 && string(a.body[8:]) == "marker"
}

// leaving is what a packet out of an interface says of the probe, if anything.
func (m *Mine) leaving(device string, data []byte) *Seen {
	arrived := parse(data)
	if arrived == nil {
		return nil
	}
	if m.isIt(arrived) {
		return arrived.seen("out", device)
	}
	return m.answer(arrived, device)
}

// handed is what a packet for the node itself says of the probe, if anything.
func (m *Mine) handed(arrived *Arrived) *Seen {
	if m.isIt(arrived) {
		return arrived.seen("local", "")
	}
	return m.answer(arrived, "")
}

func (m *Mine) isIt(a *Arrived) bool {
	if a.proto != protocols[m.proto] {
		return false
	}
	tag, flags, kind := m.tag, byte(syn), byte(chunkInit)
	if m.answered {
		tag, flags, kind = answering(tag), syn|ack, chunkInitAck
	}
	switch m.proto {
	case "tcp":
		return len(a.body) >= 20 && a.body[13]&(syn|ack) == flags &&
			(m.fromHere && !m.answered || binary.BigEndian.Uint32(a.body[4:]) == tag)
	case "sctp":
		return len(a.body) >= 20 && a.body[12] == kind && binary.BigEndian.Uint32(a.body[16:]) == tag
	}
	return len(a.body) > 8 && bytes.Equal(a.body[8:], payload(tag))
}

// answer is what the kernel itself says to a probe: "kernel" is a process of the node that
// takes the connection.
func (m *Mine) answer(a *Arrived, device string) *Seen {
	if m.answered {
		return nil
	}
	switch a.proto {
	case unix.IPPROTO_TCP:
		if m.proto != "tcp" || len(a.body) < 20 || !m.acknowledges(a) {
			return nil
		}
		switch flags := a.body[13] & (fin | syn | rst | ack); {
		case flags&rst != 0:
			return a.seen("reset", device)
		case flags == syn|ack:
			return a.seen("kernel", device)
		}
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		if len(a.body) < 8 {
			return nil
		}
		about := parse(a.body[8:])
		if about != nil && len(about.body) >= 8 && m.isAbout(about) {
			return &Seen{How: "icmp", Kind: a.body[0], Code: a.body[1]}
		}
	}
	return nil
}

func (m *Mine) acknowledges(a *Arrived) bool {
	if m.fromHere {
		return binary.BigEndian.Uint16(a.body[2:]) == m.port
	}
	return binary.BigEndian.Uint32(a.body[8:]) == m.tag+1
}

// isAbout says whether what an ICMP error quotes is the probe.
func (m *Mine) isAbout(quoted *Arrived) bool {
	if m.proto != "tcp" {
		return m.isIt(quoted)
	}
	if quoted.proto != unix.IPPROTO_TCP {
		return false
	}
	if m.fromHere {
		return binary.BigEndian.Uint16(quoted.body) == m.port
	}
	return binary.BigEndian.Uint32(quoted.body[4:]) == m.tag
}

func (a *Arrived) seen(how, device string) *Seen {
	one := &Seen{
		How: how, Dev: device, Src: a.src.String(), Dst: a.dst.String(),
		Sport: binary.BigEndian.Uint16(a.body), Dport: binary.BigEndian.Uint16(a.body[2:]),
	}
	if a.proto == unix.IPPROTO_TCP {
		one.seq = binary.BigEndian.Uint32(a.body[4:])
	}
	return one
}
