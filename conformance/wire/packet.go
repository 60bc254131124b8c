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
	// In the sequence number of a TCP packet, in the payload of a UDP packet.
	tag uint32
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

func payload(tag uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte("uturn"), tag)
}

// packet is the first packet of a flow.
func packet(proto string, src, dst netip.AddrPort, tag uint32) []byte {
	var body []byte
	number := byte(unix.IPPROTO_UDP)
	if proto == "tcp" {
		number = unix.IPPROTO_TCP
		body = make([]byte, 20)
		binary.BigEndian.PutUint32(body[4:], tag)
		body[12], body[13] = 5<<4, 0x02
		binary.BigEndian.PutUint16(body[14:], 64240)
	} else {
		body = append(make([]byte, 8), payload(tag)...)
		binary.BigEndian.PutUint16(body[4:], uint16(len(body)))
	}
	binary.BigEndian.PutUint16(body[0:], src.Port())
	binary.BigEndian.PutUint16(body[2:], dst.Port())
	at := 6
	if proto == "tcp" {
		at = 16
	}
	pseudo := append(src.Addr().AsSlice(), dst.Addr().AsSlice()...)
	pseudo = append(pseudo, 0, number, byte(len(body)>>8), byte(len(body)))
	binary.BigEndian.PutUint16(body[at:], checksum(append(pseudo, body...)))

	if src.Addr().Is6() {
		head := make([]byte, 40)
		head[0], head[6], head[7] = 0x60, number, 64
		binary.BigEndian.PutUint16(head[4:], uint16(len(body)))
		copy(head[8:], src.Addr().AsSlice())
		copy(head[24:], dst.Addr().AsSlice())
		return append(head, body...)
	}
	head := make([]byte, 20)
	head[0], head[8], head[9] = 0x45, 64, number
	binary.BigEndian.PutUint16(head[2:], uint16(20+len(body)))
	copy(head[12:], src.Addr().AsSlice())
	copy(head[16:], dst.Addr().AsSlice())
	binary.BigEndian.PutUint16(head[10:], checksum(head))
	return append(head, body...)
}

func checksum(data []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	if len(data)%2 == 1 {
		sum += uint32(data[len(data)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	if sum == 0xffff {
		return 0xffff
	}
	return ^uint16(sum)
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
	return m.answer(arrived)
}

// handed is what a packet for the node itself says of the probe, if anything.
func (m *Mine) handed(arrived *Arrived) *Seen {
	if m.isIt(arrived) {
		return arrived.seen("local", "")
	}
	return m.answer(arrived)
}

func (m *Mine) isIt(a *Arrived) bool {
	if m.proto == "tcp" {
		return a.proto == unix.IPPROTO_TCP && len(a.body) >= 20 && a.body[13]&0x12 == 0x02 &&
			(m.fromHere || binary.BigEndian.Uint32(a.body[4:]) == m.tag)
	}
	return a.proto == unix.IPPROTO_UDP && len(a.body) > 8 && bytes.Equal(a.body[8:], payload(m.tag))
}

func (m *Mine) answer(a *Arrived) *Seen {
	switch a.proto {
	case unix.IPPROTO_TCP:
		reset := m.proto == "tcp" && len(a.body) >= 20 && a.body[13]&0x04 != 0
		if reset && !m.fromHere && binary.BigEndian.Uint32(a.body[8:]) == m.tag+1 {
			return &Seen{How: "reset"}
		}
		if reset && m.fromHere && binary.BigEndian.Uint16(a.body[2:]) == m.port {
			return &Seen{How: "reset"}
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

// isAbout says whether what an ICMP error quotes is the probe.
func (m *Mine) isAbout(quoted *Arrived) bool {
	if m.proto == "udp" {
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
	return &Seen{
		How: how, Dev: device, Src: a.src.String(), Dst: a.dst.String(),
		Sport: binary.BigEndian.Uint16(a.body), Dport: binary.BigEndian.Uint16(a.body[2:]),
	}
}
