package interop

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/sctp"
)

// envCount has a rank of patterns_test.go count what it sends to other sites, datagram by datagram, and
// print that as a line of JSON.
const envCount = "WEFT_INTEROP_COUNT"

// siteCounts are what a transport protocol did between sites.
type siteCounts struct {
	Timeouts uint64 `json:"timeouts"` // expirations of the retransmission timer
	Fast     uint64 `json:"fast"`     // other retransmissions
	Restarts uint64 `json:"restarts"` // data after a pause of idleTime or more
}

func (c *siteCounts) add(d siteCounts) {
	c.Timeouts += d.Timeouts
	c.Fast += d.Fast
	c.Restarts += d.Restarts
}

// idleTime is the least RTO of SCTP and TCP here, after which a congestion window that was not used
// shrinks (RFC 9260, Section 7.2.1; RFC 5681, Section 4.1).
const idleTime = 200 * time.Millisecond

// timerTime is how long after a chunk was sent its retransmission was due to the timer: the
// round trips are a tenth of it.
const timerTime = 180 * time.Millisecond

// A countingConn is a socket that counts.
type countingConn struct {
	net.PacketConn
	mu    sync.Mutex
	sent  map[chunkID]time.Time // guarded by mu: when a chunk was sent last
	count siteCounts            // guarded by mu
}

// chunkID is a chunk to one peer.
type chunkID struct {
	to  netip.AddrPort
	tag uint32
	tsn uint32
}

func newCountingConn(c net.PacketConn) *countingConn {
	return &countingConn{PacketConn: c, sent: make(map[chunkID]time.Time)}
}

func (c *countingConn) WriteTo(b []byte, to net.Addr) (int, error) {
	addr := to.(*net.UDPAddr).AddrPort()
	local := c.LocalAddr().(*net.UDPAddr).AddrPort()
	if addr.Addr().As4()[2] != local.Addr().As4()[2] { // another site
		c.mu.Lock()
		now, timer := time.Now(), false
		dataChunks(b, func(tag, tsn uint32) {
			id := chunkID{addr, tag, tsn}
			if last, ok := c.sent[id]; ok && now.Sub(last) >= timerTime {
				timer = true
			} else if ok {
				c.count.Fast++
			}
			c.sent[id] = now
		})
		if timer { // one expiration may send several
			c.count.Timeouts++
		}
		c.mu.Unlock()
	}
	return c.PacketConn.WriteTo(b, to)
}

// dataChunks calls yield for each DATA or I-DATA chunk of an SCTP packet.
func dataChunks(pkt []byte, yield func(tag, tsn uint32)) {
	const header = 12
	if len(pkt) < header {
		return
	}
	tag := binary.BigEndian.Uint32(pkt[4:])
	for b := pkt[header:]; len(b) >= 8; {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if b[0] == 0 || b[0] == 64 {
			yield(tag, binary.BigEndian.Uint32(b[4:]))
		}
		if n = (n + 3) &^ 3; n < 4 || n > len(b) {
			return
		}
		b = b[n:]
	}
}

// countOptions returns the options of a rank that counts, and what prints the counts.
func countOptions() (opts []mpi.Option, print func() error) {
	if os.Getenv(envCount) == "" {
		return nil, func() error { return nil }
	}
	var conn *countingConn
	opts = append(opts, mpi.WithPacketConns(func(int) ([]sctp.PacketConn, error) {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(os.Getenv("WEFT_NET_ADDRS"))})
		if err != nil {
			return nil, err
		}
		conn = newCountingConn(c)
		return []sctp.PacketConn{conn}, nil
	}))
	return opts, func() error {
		conn.mu.Lock()
		defer conn.mu.Unlock()
		return json.NewEncoder(os.Stdout).Encode(map[string]siteCounts{"counts": conn.count})
	}
}

// pausesIn returns how often, in a capture of weft net, something between two sites began to send again
// after a pause: an SCTP association or a TCP connection in one direction.
func pausesIn(file string) (n uint64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		return 0, err
	}
	type flow struct{ from, to netip.AddrPort }
	last := make(map[flow]time.Time)
	for {
		pkt, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		from, to, data := betweenSites(pkt)
		if !data {
			continue
		}
		k := flow{from, to}
		if at, ok := last[k]; ok && info.Timestamp.Sub(at) >= idleTime {
			n++
		}
		last[k] = info.Timestamp
	}
}

// betweenSites returns the addresses of a packet, and whether it carries data from one site to another.
func betweenSites(pkt []byte) (from, to netip.AddrPort, data bool) {
	if len(pkt) < 40 || pkt[0] != 0x45 {
		return from, to, false
	}
	src, dst, l4 := [4]byte(pkt[12:16]), [4]byte(pkt[16:20]), pkt[20:]
	switch {
	case src[0] == 10 && dst[0] == 10 && src[2] != dst[2]:
	case src[0] == 198 && dst[0] == 198 && src[3]/16 != dst[3]/16 && src[3]%16 != 15:
	default:
		return from, to, false
	}
	from = netip.AddrPortFrom(netip.AddrFrom4(src), binary.BigEndian.Uint16(l4))
	to = netip.AddrPortFrom(netip.AddrFrom4(dst), binary.BigEndian.Uint16(l4[2:]))
	switch pkt[9] {
	case 6:
		data = len(l4) > int(l4[12]>>4)*4
	case 17:
		dataChunks(l4[8:], func(uint32, uint32) { data = true })
	}
	return from, to, data
}
