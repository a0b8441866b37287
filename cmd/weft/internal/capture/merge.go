// Package capture writes packet captures: of a running transport, or merged from what
// the ranks of a job have recorded.
package capture

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// A capture file of a rank is a sequence of records, one per datagram that it
// sent: 8 octets Unix time in nanoseconds, local and remote address (1 octet
// family, 4 or 6; 16 octets address, an IPv4 one in the first four; 2 octets
// port), 4 octets length, and that many octets of UDP payload, all big endian.
const (
	addrLen     = 1 + 16 + 2
	headerLen   = 8 + 2*addrLen + 4
	maxDatagram = 65535
)

// record is one captured datagram.
type record struct {
	when          int64
	local, remote netip.AddrPort
	payload       []byte
}

// reader reads the records of one rank.
type reader struct {
	name string
	file *os.File
	r    *bufio.Reader
	rec  record // the next one
}

// next reads the next record. It returns io.EOF at the end, which may cut the
// last record in two when the rank was killed.
func (c *reader) next() error {
	var head [headerLen]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return cutIsEnd(err)
	}
	c.rec.when = int64(binary.BigEndian.Uint64(head[:]))
	var ok1, ok2 bool
	c.rec.local, ok1 = parseAddr(head[8:])
	c.rec.remote, ok2 = parseAddr(head[8+addrLen:])
	n := binary.BigEndian.Uint32(head[headerLen-4:])
	if !ok1 || !ok2 || n > maxDatagram {
		return fmt.Errorf("capture file %s is damaged", c.name)
	}
	c.rec.payload = append(c.rec.payload[:0], make([]byte, n)...)
	_, err := io.ReadFull(c.r, c.rec.payload)
	return cutIsEnd(err)
}

func cutIsEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// parseAddr decodes one address of a record.
func parseAddr(b []byte) (netip.AddrPort, bool) {
	var ip netip.Addr
	switch b[0] {
	case 4:
		ip = netip.AddrFrom4([4]byte(b[1:5]))
	case 6:
		ip = netip.AddrFrom16([16]byte(b[1:17]))
	default:
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[17:])), true
}

// readerHeap orders readers by the time of their next record.
type readerHeap []*reader

func (h readerHeap) Len() int           { return len(h) }
func (h readerHeap) Less(i, j int) bool { return h[i].rec.when < h[j].rec.when }
func (h readerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *readerHeap) Push(x any)        { *h = append(*h, x.(*reader)) }
func (h *readerHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// Merge writes the records of the named files to w in the order of
// their times, as a pcap file of raw IP packets, and returns how many there
// were. A file that does not exist counts as empty: its rank sent nothing.
func Merge(w io.Writer, names []string) (int, error) {
	var h readerHeap
	for _, name := range names {
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		defer f.Close()
		c := &reader{name: name, file: f, r: bufio.NewReaderSize(f, 1<<20)}
		if err := c.next(); err == nil {
			h = append(h, c)
		} else if !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	heap.Init(&h)

	out := bufio.NewWriterSize(w, 1<<20)
	pw := pcapgo.NewWriterNanos(out)
	if err := pw.WriteFileHeader(maxDatagram+64, layers.LinkTypeRaw); err != nil {
		return 0, err
	}
	buf := gopacket.NewSerializeBuffer()
	count := 0
	for len(h) > 0 {
		c := h[0]
		if err := writeDatagram(pw, buf, &c.rec); err != nil {
			return count, err
		}
		count++
		switch err := c.next(); {
		case err == nil:
			heap.Fix(&h, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&h)
		default:
			return count, err
		}
	}
	return count, out.Flush()
}

// writeDatagram puts the IP and UDP headers back on a payload and writes it.
func writeDatagram(w *pcapgo.Writer, buf gopacket.SerializeBuffer, r *record) error {
	udp := &layers.UDP{SrcPort: layers.UDPPort(r.local.Port()), DstPort: layers.UDPPort(r.remote.Port())}
	var ip gopacket.SerializableLayer
	if r.local.Addr().Is4() {
		v4 := &layers.IPv4{
			Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, Flags: layers.IPv4DontFragment,
			SrcIP: r.local.Addr().AsSlice(), DstIP: r.remote.Addr().AsSlice(),
		}
		udp.SetNetworkLayerForChecksum(v4)
		ip = v4
	} else {
		v6 := &layers.IPv6{
			Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP,
			SrcIP: r.local.Addr().AsSlice(), DstIP: r.remote.Addr().AsSlice(),
		}
		udp.SetNetworkLayerForChecksum(v6)
		ip = v6
	}
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, opts, ip, udp, gopacket.Payload(r.payload)); err != nil {
		return err
	}
	b := buf.Bytes()
	return w.WritePacket(gopacket.CaptureInfo{
		Timestamp: time.Unix(0, r.when), CaptureLength: len(b), Length: len(b),
	}, b)
}
