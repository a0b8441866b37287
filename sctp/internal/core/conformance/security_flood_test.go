package conformance

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// heap returns the bytes in use after collections.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the second one empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// must runs statements.
func (r *runner) must(t *testing.T, lines ...string) {
	t.Helper()
	if err := r.steps(lines...); err != nil {
		t.Fatal(err)
	}
}

// raw hands a packet with the given chunks over and returns what is sent.
func (r *runner) raw(tag uint32, from netip.AddrPort, chunks []byte) []outPacket {
	b := wire.AppendHeader(nil, wire.Header{SrcPort: peerPort, DstPort: localPort, VTag: tag})
	b = append(b, chunks...)
	wire.SetChecksum(b)
	r.sent = nil
	r.deliver(wire.Header{}, &core.Packet{Tuple: core.Tuple{Local: r.local[0], Remote: from}, Data: b}, true)
	out := r.sent
	r.sent = nil
	return out
}

func addr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), udpPort)
}

// RFC 9260, Section 12.2.4.1 (flooding), and the classic SYN flood: INITs from
// everywhere leave nothing behind, and neither do cookies that are not ours.
func TestSecurityInitFlood(t *testing.T) {
	r := newRunner(t, "flood")
	r.must(t, "setup listener")
	init := wire.AppendInit(nil, wire.Init{Tag: 1, RWND: 65536, OutStreams: 65535, InStreams: 65535, TSN: 1})
	echo := wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: make([]byte, 110)})
	for i := range 100 {
		r.raw(0, addr(i+1), init)
	}
	before := heap()
	const floods = 10000
	for i := range floods {
		if n := len(r.raw(0, addr(i+1), init)); n != 1 {
			t.Fatalf("%d replies to an INIT", n)
		}
		binary.BigEndian.PutUint64(echo[8:], uint64(i))
		if n := len(r.raw(uint32(i), addr(i+1), echo)); n != 0 {
			t.Fatalf("%d replies to a forged cookie", n)
		}
	}
	if grown := heap() - before; grown > 256<<10 {
		t.Errorf("%d INITs left %d bytes behind", floods, grown)
	}
	if r.assoc != nil {
		t.Error("a forged cookie made an association")
	}
}

// RFC 5062, Section 9: before the address of a
// peer is verified, what we send there is in proportion to what came.
func TestSecurityAmplification(t *testing.T) {
	chunk := func(s string) []byte {
		r := newRunner(t, "x")
		r.must(t, "setup listener")
		b, err := r.buildChunk(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, s := range []string{"INIT", "INIT {fwd, ecn, ext FORWARD-TSN I-DATA I-FORWARD-TSN RE-CONFIG}", "INIT {params 100 0xc123 8}", "INIT {param 0xc123 900}",
		"INIT {addrs 16}", "INIT {host a}", "INIT out=0", "DATA BE", "SHUTDOWN ACK", "HEARTBEAT info=1000", "ABORT", "COOKIE ECHO len=110", "SACK",
		"ERROR {cause 9}", "CHUNK type=0xff len=0"} {
		for _, listening := range []bool{true, false} {
			r := newRunner(t, "amplify")
			if listening {
				r.must(t, "setup listener")
			}
			c := chunk(s)
			tag := uint32(1)
			if c[0] == byte(wire.ChunkInit) {
				tag = 0
			}
			in, out := wire.HeaderLen+len(c), 0
			for _, p := range r.raw(tag, addr(9), c) {
				out += len(p.data)
			}
			if out > 3*in {
				t.Errorf("%s: %d bytes answer %d (listening: %v)", s, out, in, listening)
			}
		}
	}
}

// RFC 5062, Sections 5 and 6 (bombing): somebody who owns one address lists fifteen
// others. These get heartbeats at the rate of RFC 9260, Section 5.4, and fewer
// once they seem dead, but never data.
func TestSecurityBombing(t *testing.T) {
	r := newRunner(t, "bombing")
	r.cfg.HBInterval = 30 * time.Second
	r.must(t, "peer {addrs 15}", "setup server", "send len=1000 n=40")
	const minutes = 10
	others, packets := 0, 0
	for range minutes * 60 {
		for _, p := range r.sent {
			if p.to.Addr() == peerAddr {
				continue
			}
			packets++
			others += len(p.data)
			it := wire.NewChunks(p.data[wire.HeaderLen:])
			for it.Next() {
				if c := it.Chunk().Type; c != wire.ChunkHeartbeat {
					t.Fatalf("%v to the unverified address %v", c, p.to)
				}
			}
		}
		// The attacker keeps the association alive.
		r.sent = nil
		if r.assoc.Stats().InFlight > 0 {
			r.must(t, "> HEARTBEAT", "drain")
		}
		r.advance(r.now+clock.Time(time.Second), false)
	}
	// Six heartbeats while an address is active, then one in at least 30 seconds.
	if limit := 15 * (7 + minutes*2); packets > limit || others > 64*limit {
		t.Errorf("%d packets with %d bytes to unverified addresses, want at most %d", packets, others, limit)
	}
}

// CVE-2014-3688 and pion's WithMaxReassemblyQueueEntries: tiny fragments that
// never make a message fill the window, not the memory.
func TestSecurityFragments(t *testing.T) {
	for name, ext := range map[string]string{"DATA": "", "I-DATA": "idata"} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, "fragments")
			r.cfg.RecvBuffer = 128 << 10
			if ext != "" {
				r.must(t, "peer ext="+ext)
			}
			r.must(t, "setup established")
			before := heap()
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range 30000 {
				d := wire.Data{TSN: peerTSN + 2*uint32(i) + 1, SID: uint16(rng.IntN(10)), MID: rng.Uint32N(1000), FSN: 1 + rng.Uint32N(1<<20), Payload: []byte{1}}
				c := wire.AppendData(nil, d)
				if ext != "" {
					c = wire.AppendIData(nil, d)
				}
				if r.raw(0x4c4c4c4c, r.peer[0], c); r.assoc.State() != core.Established {
					break // it may see through us
				}
			}
			// What was under way when the window closed is taken, up to four
			// times the buffer with all overhead.
			if n := r.assoc.Stats().Readable; n > 4*r.cfg.RecvBuffer {
				t.Errorf("%d bytes held, with a receive buffer of %d", n, r.cfg.RecvBuffer)
			}
			if grown := heap() - before; grown > 2<<20 {
				t.Errorf("30000 fragments of one byte hold %d bytes", grown)
			}
			runtime.KeepAlive(r)
		})
	}
}

// RFC 5062, Sections 8 and 10, CVE-2014-7841: whatever one peer sends in one batch, what
// waits to be sent is bounded, and so are SACKs.
func TestSecurityReplies(t *testing.T) {
	r := newRunner(t, "replies")
	r.must(t, "setup established", "> DATA BE tsn=P", "drain")
	for _, s := range []string{"HEARTBEAT info=500", "DATA BE tsn=P", "DATA BE tsn=P+5 sid=999", "CHUNK type=0xfe len=200", "SHUTDOWN ACK _length=5", "COOKIE ACK",
		"INIT tag=77", "INIT out=0", "COOKIE ECHO old"} {
		for range 500 {
			r.must(t, ">+ "+s)
		}
		r.assoc.EndBatch(r.now)
		r.poll()
		bytes := 0
		for _, p := range r.sent {
			bytes += len(p.data)
		}
		if len(r.sent) > 12 || bytes > 12*1452 {
			t.Errorf("500 × %s: %d packets, %d bytes", s, len(r.sent), bytes)
		}
		r.sent = nil
	}
	if r.assoc.State() != core.Established {
		t.Errorf("state is %v", r.assoc.State())
	}
	if n := len(r.events); n > 1000 {
		t.Errorf("%d events", n)
	}
}

// CVE-2021-3772 again, with numbers: guessing tags and TSNs changes nothing and
// holds nothing.
func TestSecurityBlindGuesses(t *testing.T) {
	r := newRunner(t, "guesses")
	r.must(t, "setup established", "send len=8", "drain")
	want := r.assoc.Stats()
	before := heap()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		c := wire.AppendChunk(nil, wire.ChunkType(rng.Uint32()), byte(rng.Uint32()), fill(0, rng.IntN(40)))
		tag := rng.Uint32()
		if tag == 0x4c4c4c4c || tag == peerTag {
			continue
		}
		if out := r.raw(tag, r.peer[0], c); len(out) > 0 {
			t.Fatalf("answered %s", wire.Describe(out[0].data))
		}
	}
	got := r.assoc.Stats()
	want.PacketsReceived, want.Dropped = got.PacketsReceived, got.Dropped
	if got != want {
		t.Errorf("state changed: %+v, want %+v", got, want)
	}
	if grown := heap() - before; grown > 256<<10 {
		t.Errorf("guesses left %d bytes behind", grown)
	}
}

// CVE-2019-20503 and CVE-2016-9555: every packet cut short at every place, and
// with every length field wrong, in every state. Nothing panics, and an honest
// packet still works where the association survived.
func TestSecurityTruncation(t *testing.T) {
	chunks := []string{"INIT tag=PT+1 {ipv4 10.0.0.3, ecn, fwd, ext I-DATA}", "INIT ACK {cookie, param 0xc123 8}", "COOKIE ECHO", "DATA BE tsn=P len=20",
		"I-DATA B tsn=P mid=1 len=20", "SACK cum=L-1 gap=2-3,5-6 dup=1,2", "HEARTBEAT", "HEARTBEAT ACK info=20", "ERROR {stale 1, violation x}", "ABORT T {userabort x}",
		"SHUTDOWN cum=L-1", "FORWARD-TSN cum=P skip=1:1,2:2", "I-FORWARD-TSN cum=P skip=1:1", "RE-CONFIG {outreset req=P streams=1|2}", "AUTH", "ASCONF {addip 10.0.0.5}",
		"ECNE tsn=L", "CWR tsn=L", "PAD len=20"}
	for _, how := range []string{"listener", "nobody", "wait", "echoed", "established", "server", "pending", "sent", "received", "acksent"} {
		for _, c := range chunks {
			base := newRunner(t, how)
			base.must(t, "peer ext=pr,idata,reconfig,ecn", "setup "+how)
			base.sent = nil
			whole, err := base.buildChunk(c)
			if err != nil {
				t.Fatal(err)
			}
			tag, _ := base.symbol("LT")
			if whole[0] == byte(wire.ChunkInit) {
				tag = 0
			}
			for n := range whole {
				base.raw(tag, base.peer[0], whole[:n])
				lied := append([]byte(nil), whole...)
				lied[2], lied[3] = byte(n>>8), byte(n)
				base.raw(tag, base.peer[0], lied)
				if a := base.assoc; a != nil && a.State() == core.Closed {
					break
				}
			}
			base.advance(base.now+clock.Time(time.Minute), false)
		}
	}
}
