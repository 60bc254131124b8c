package main

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Flags of TCP.
const (
	fin = 0x01
	syn = 0x02
	rst = 0x04
	ack = 0x10
)

// Kinds of chunks that open an SCTP association.
const (
	chunkInit    = 1
	chunkInitAck = 2
)

var protocols = map[string]byte{
	"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP, "sctp": unix.IPPROTO_SCTP,
}

// request is the first packet of a flow.
func request(proto string, src, dst netip.AddrPort, tag uint32) []byte {
	var body []byte
	switch proto {
	case "tcp":
		body = segment(tag, 0, syn)
	case "sctp":
		body = chunk(chunkInit, 0, tag)
	default:
		body = datagram(tag)
	}
	return whole(proto, src, dst, body)
}

// answer is what a target sends back: to's source and destination are the request's, as it
// arrived, and seq its number, if it was TCP.
func answer(proto string, src, dst netip.AddrPort, tag, seq uint32) []byte {
	var body []byte
	switch proto {
	case "tcp":
		body = segment(answering(tag), seq+1, syn|ack)
	case "sctp":
		body = chunk(chunkInitAck, tag, answering(tag))
	default:
		body = datagram(answering(tag))
	}
	return whole(proto, src, dst, body)
}

// answering tells an answer's tag from its request's.
func answering(tag uint32) uint32 { return tag ^ 0x01000000 }

func segment(seq, acked uint32, flags byte) []byte {
	body := make([]byte, 20)
	binary.BigEndian.PutUint32(body[4:], seq)
	binary.BigEndian.PutUint32(body[8:], acked)
	body[12], body[13] = 5<<4, flags
	binary.BigEndian.PutUint16(body[14:], 64240)
	return body
}

func datagram(tag uint32) []byte {
	body := append(make([]byte, 8), payload(tag)...)
	binary.BigEndian.PutUint16(body[4:], uint16(len(body)))
	return body
}

func payload(tag uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte("uturn"), tag)
}

// chunk is an SCTP packet with one chunk; to is the tag that the receiver has asked for.
func chunk(kind byte, to, own uint32) []byte {
	body := make([]byte, 32)
	binary.BigEndian.PutUint32(body[4:], to)
	body[12], body[15] = kind, 20
	binary.BigEndian.PutUint32(body[16:], own)
	binary.BigEndian.PutUint32(body[20:], 65536)
	binary.BigEndian.PutUint16(body[24:], 1)
	binary.BigEndian.PutUint16(body[26:], 1)
	binary.BigEndian.PutUint32(body[28:], 1)
	return body
}

// fill puts ports and, where it can be known yet, the checksum into a body.
func fill(proto string, src, dst netip.AddrPort, body []byte) {
	binary.BigEndian.PutUint16(body[0:], src.Port())
	binary.BigEndian.PutUint16(body[2:], dst.Port())
	if proto == "sctp" {
		sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
		binary.LittleEndian.PutUint32(body[8:], sum)
		return
	}
	at := 6
	if proto == "tcp" {
		at = 16
	}
	pseudo := append(src.Addr().AsSlice(), dst.Addr().AsSlice()...)
	pseudo = append(pseudo, 0, protocols[proto], byte(len(body)>>8), byte(len(body)))
	binary.BigEndian.PutUint16(body[at:], checksum(append(pseudo, body...)))
}

// whole is a packet with all its headers.
func whole(proto string, src, dst netip.AddrPort, body []byte) []byte {
	fill(proto, src, dst, body)
	if src.Addr().Is6() {
		head := make([]byte, 40)
		head[0], head[6], head[7] = 0x60, protocols[proto], 64
		binary.BigEndian.PutUint16(head[4:], uint16(len(body)))
		copy(head[8:], src.Addr().AsSlice())
		copy(head[24:], dst.Addr().AsSlice())
		return append(head, body...)
	}
	head := make([]byte, 20)
	head[0], head[8], head[9] = 0x45, 64, protocols[proto]
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
