package netem

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// OffloadHeader is the length of what precedes the packet of a frame: struct
// virtio_net_hdr (Virtual I/O Device 1.2, section 5.1.6), which a TUN interface
// with IFF_VNET_HDR reads and writes in the machine's byte order.
const OffloadHeader = 10

// What is in that header.
const (
	vnetNeedsChecksum = 1 // flags: the checksum field has the sum of the pseudo-header only

	vnetWhole = 0 // gso_type: one packet
	vnetTCP4  = 1 // gso_type: a GSO packet of TCP segments over IPv4
	vnetUDP   = 5 // gso_type: a GSO packet of UDP datagrams
	vnetECN   = 0x80
)

// What is looked at in the headers of a packet.
const (
	protoTCP = 6
	protoUDP = 17

	ipHeader  = 20 // without options
	udpHeader = 8
	tcpHeader = 20 // without options
	udpField  = 6  // the checksum
	tcpField  = 16

	tcpFIN, tcpPSH, tcpACK, tcpCWR = 0x01, 0x08, 0x10, 0x80
)

// Split passes each packet that a frame stands for to yield, its checksum filled in:
// hosts leave it to network cards to cut a GSO packet of datagrams or segments into
// packets (UDP_SEGMENT of udp(7), TCP segmentation offload) and to add up checksums.
// It reports whether the frame was well-formed; of one that is not nothing is passed.
// Packets are in the memory of frame, which is overwritten, and are valid until yield
// returns. GSO batches over IPv6 are passed on whole.
func Split(frame []byte, yield func(pkt []byte)) bool {
	if len(frame) < OffloadHeader {
		return false
	}
	flags, kind := frame[0], frame[1]&^vnetECN
	size := int(binary.NativeEndian.Uint16(frame[4:]))
	start, field := int(binary.NativeEndian.Uint16(frame[6:])), int(binary.NativeEndian.Uint16(frame[8:]))
	pkt := frame[OffloadHeader:]
	if kind == vnetWhole || len(pkt) == 0 || pkt[0]>>4 != 4 {
		ok := true
		if flags&vnetNeedsChecksum != 0 {
			ok = completeChecksum(pkt, start, field)
		}
		if ok {
			yield(pkt)
		}
		return ok
	}
	head, ok := gsoHeaderLen(pkt, kind)
	if !ok || size == 0 {
		return false
	}
	var kept [60 + 60]byte
	header := kept[:copy(kept[:], pkt[:head])]
	ip, field := int(pkt[0]&0xf)*4, checksumField(pkt)
	for i := 0; i*size < len(pkt)-head; i++ {
		// The header goes where the packet before ended, which is done with.
		p := pkt[i*size : min((i+1)*size+head, len(pkt))]
		copy(p, header)
		binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
		binary.BigEndian.PutUint16(p[4:], binary.BigEndian.Uint16(header[4:])+uint16(i))
		sumIP(p[:ip])
		if kind == vnetUDP {
			binary.BigEndian.PutUint16(p[ip+4:], uint16(len(p)-ip))
		} else {
			binary.BigEndian.PutUint32(p[ip+4:], binary.BigEndian.Uint32(header[ip+4:])+uint32(i*size))
			if i > 0 {
				p[ip+13] &^= tcpCWR
			}
			if (i+1)*size < len(pkt)-head {
				p[ip+13] &^= tcpFIN | tcpPSH
			}
		}
		binary.BigEndian.PutUint16(p[ip+field:], pseudoSum(p, ip))
		completeChecksum(p, ip, field)
		yield(p)
	}
	return true
}

// gsoHeaderLen returns the length of the headers of an IPv4 packet that is a GSO packet.
func gsoHeaderLen(pkt []byte, kind byte) (int, bool) {
	ip := int(pkt[0]&0xf) * 4
	switch {
	case ip < ipHeader || len(pkt) < ip:
		return 0, false
	case kind == vnetUDP:
		return ip + udpHeader, pkt[9] == protoUDP && len(pkt) > ip+udpHeader
	case kind == vnetTCP4 && pkt[9] == protoTCP && len(pkt) > ip+tcpHeader:
		head := ip + int(pkt[ip+12]>>4)*4
		return head, head >= ip+tcpHeader && len(pkt) > head
	}
	return 0, false
}

// checksumField returns where behind the IP header of a TCP or UDP packet the checksum
// is.
func checksumField(pkt []byte) int {
	if pkt[9] == protoTCP {
		return tcpField
	}
	return udpField
}

// Joiner puts packets that follow each other in one flow into one frame, for which
// the receiving host's network stack is passed once (generic receive offload, as
// network cards and drivers do it). It takes UDP datagrams of one length, of which the
// last may be shorter, and TCP segments that follow each other. What it cannot join is
// a frame by itself, as it came. Packets of one flow keep their order.
type Joiner struct {
	udp     bool
	write   func(to int, frame []byte, packets int)
	pending []*gsoPacket // in order of their first packets
	free    []*gsoPacket
}

// Limits of a Joiner.
const (
	maxPending      = 32 // under construction
	maxBatchPackets = 64 // what a receiver's kernel expects at most
)

// gsoPacket is a frame to which packets of a flow are added.
type gsoPacket struct {
	to      int
	frame   []byte
	flow    bool // it has the headers of a flow
	open    bool // more may follow
	size    int  // bytes of payload per packet
	head    int  // bytes of headers
	packets int
}

// NewJoiner returns a Joiner that passes frames to write, which must not keep them;
// udp says whether datagrams are joined.
func NewJoiner(udp bool, write func(to int, frame []byte, packets int)) *Joiner {
	return &Joiner{udp: udp, write: write}
}

// Add takes a packet to a destination. The packet is copied.
func (j *Joiner) Add(to int, pkt []byte) {
	head, flow := flowHeader(pkt)
	payload := len(pkt) - head
	fits := flow && payload > 0 && j.joinable(pkt)
	for i := len(j.pending) - 1; i >= 0; i-- {
		t := j.pending[i]
		if t.to != to || flow && !(t.flow && sameFlow(t.frame[OffloadHeader:], pkt)) {
			continue
		}
		if t.open && fits && t.takes(pkt, head) {
			t.frame = append(t.frame, pkt[head:]...)
			t.packets++
			t.open = t.ending(pkt) && payload == t.size
			return
		}
		t.open = false
		if flow {
			break // those before are closed
		}
	}
	if len(j.pending) == maxPending {
		j.Flush()
	}
	var t *gsoPacket
	if n := len(j.free); n > 0 {
		t, j.free = j.free[n-1], j.free[:n-1]
	} else {
		t = &gsoPacket{frame: make([]byte, OffloadHeader)}
	}
	*t = gsoPacket{to: to, frame: append(t.frame[:OffloadHeader], pkt...), flow: flow, size: payload, head: head,
		packets: 1}
	clear(t.frame[:OffloadHeader])
	t.open = fits && t.ending(pkt)
	j.pending = append(j.pending, t)
}

// Flush passes on all that is there.
func (j *Joiner) Flush() {
	for _, t := range j.pending {
		t.finish()
		j.write(t.to, t.frame, t.packets)
	}
	j.free = append(j.free, j.pending...)
	j.pending = j.pending[:0]
}

// flowHeader returns the length of the headers of a TCP or UDP packet over IPv4 that
// is no fragment and has no options of IPv4.
func flowHeader(pkt []byte) (int, bool) {
	if len(pkt) < ipHeader+udpHeader || pkt[0] != 0x45 || int(binary.BigEndian.Uint16(pkt[2:])) != len(pkt) ||
		binary.BigEndian.Uint16(pkt[6:])&0x3fff != 0 {
		return 0, false
	}
	switch pkt[9] {
	case protoUDP:
		return ipHeader + udpHeader, int(binary.BigEndian.Uint16(pkt[ipHeader+4:])) == len(pkt)-ipHeader
	case protoTCP:
		if len(pkt) < ipHeader+tcpHeader {
			return 0, false
		}
		head := ipHeader + int(pkt[ipHeader+12]>>4)*4
		return head, head >= ipHeader+tcpHeader && head <= len(pkt)
	}
	return 0, false
}

// sameFlow reports whether two packets with the headers of flows belong to one.
func sameFlow(a, b []byte) bool {
	return a[9] == b[9] && bytes.Equal(a[12:ipHeader+4], b[12:ipHeader+4])
}

// joinable reports whether a packet of a flow may become part of a GSO packet, whose
// checksums the receiver does not check again.
func (j *Joiner) joinable(pkt []byte) bool {
	if pkt[9] == protoUDP && (!j.udp || binary.BigEndian.Uint16(pkt[ipHeader+udpField:]) == 0) {
		return false // not asked for, or no checksum
	}
	if pkt[9] == protoTCP && pkt[ipHeader+13]&^(tcpFIN|tcpPSH) != tcpACK {
		return false // something else than data
	}
	return onesSum(0, pkt[:ipHeader]) == 0xffff && onesSum(uint64(pseudoSum(pkt, ipHeader)), pkt[ipHeader:]) == 0xffff
}

// takes reports whether a packet of the flow may follow.
func (t *gsoPacket) takes(pkt []byte, head int) bool {
	first := t.frame[OffloadHeader:]
	if head != t.head || len(pkt)-head > t.size || len(first)+len(pkt)-head > MaxPacket || t.packets == maxBatchPackets {
		return false
	}
	if first[1] != pkt[1] || first[6] != pkt[6] || first[8] != pkt[8] { // TOS, DF, TTL
		return false
	}
	if pkt[9] == protoUDP {
		return true
	}
	a, b := first[ipHeader:t.head], pkt[ipHeader:head]
	return binary.BigEndian.Uint32(a[4:])+uint32(len(first)-t.head) == binary.BigEndian.Uint32(b[4:]) &&
		bytes.Equal(a[8:13], b[8:13]) && bytes.Equal(a[14:16], b[14:16]) && bytes.Equal(a[18:], b[18:])
}

// ending takes what ends a GSO packet of TCP segments over to its header, and reports
// whether it goes on behind pkt.
func (t *gsoPacket) ending(pkt []byte) bool {
	if pkt[9] != protoTCP {
		return true
	}
	ends := pkt[ipHeader+13] & (tcpFIN | tcpPSH)
	t.frame[OffloadHeader+ipHeader+13] |= ends
	return ends == 0
}

// finish writes the headers of a GSO packet of several packets.
func (t *gsoPacket) finish() {
	if t.packets == 1 {
		return
	}
	h, pkt := t.frame[:OffloadHeader], t.frame[OffloadHeader:]
	binary.BigEndian.PutUint16(pkt[2:], uint16(len(pkt)))
	sumIP(pkt[:ipHeader])
	h[0], h[1] = vnetNeedsChecksum, vnetTCP4
	if pkt[9] == protoUDP {
		h[1] = vnetUDP
		binary.BigEndian.PutUint16(pkt[ipHeader+4:], uint16(len(pkt)-ipHeader))
	}
	field := checksumField(pkt)
	binary.BigEndian.PutUint16(pkt[ipHeader+field:], pseudoSum(pkt, ipHeader))
	binary.NativeEndian.PutUint16(h[2:], uint16(t.head))
	binary.NativeEndian.PutUint16(h[4:], uint16(t.size))
	binary.NativeEndian.PutUint16(h[6:], ipHeader)
	binary.NativeEndian.PutUint16(h[8:], uint16(field))
}

// sumIP writes the checksum of an IPv4 header.
func sumIP(h []byte) {
	h[10], h[11] = 0, 0
	binary.BigEndian.PutUint16(h[10:], ^onesSum(0, h))
}

// pseudoSum returns the sum of the pseudo-header of TCP and UDP (RFC 9293, section
// 3.1, RFC 768) of a packet with an IPv4 header of ip bytes.
func pseudoSum(pkt []byte, ip int) uint16 {
	return onesSum(uint64(pkt[9])+uint64(len(pkt)-ip), pkt[12:20])
}

// completeChecksum writes the checksum of what begins at start, where the sum of the
// pseudo-header is in its field. It reports whether they are within the packet.
func completeChecksum(pkt []byte, start, field int) bool {
	if start+field+2 > len(pkt) {
		return false
	}
	sum := ^onesSum(0, pkt[start:])
	if sum == 0 && field == udpField {
		sum = 0xffff // the same, and not "none" (RFC 768)
	}
	binary.BigEndian.PutUint16(pkt[start+field:], sum)
	return true
}

// onesSum returns the ones' complement sum of sum and b in words of 16 bits (RFC 1071).
func onesSum(sum uint64, b []byte) uint16 {
	var carry uint64
	for len(b) >= 32 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[8:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[16:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[24:]), carry)
		b = b[32:]
	}
	var last [32]byte // padded with zeros (RFC 1071, section 4.1)
	copy(last[:], b)
	for i := 0; i < len(last); i += 8 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(last[i:]), carry)
	}
	sum, carry = bits.Add64(sum, 0, carry)
	sum += carry
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
