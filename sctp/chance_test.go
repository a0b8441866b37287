package sctp_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/wire"
)

// initOf returns the INIT or INIT ACK in a packet.
func initOf(b []byte) (wire.Init, bool) {
	it := wire.NewChunks(b[wire.HeaderLen:])
	if !it.Next() {
		return wire.Init{}, false
	}
	x, err := wire.ParseInit(it.Chunk())
	if err != nil {
		x, err = wire.ParseInitAck(it.Chunk())
	}
	return x, err == nil
}

// RFC 9260, Sections 3.3.2, 5.1 and 5.3.1: tags and initial TSNs are random, and
// no tag is 0.
func TestTagsAndTSNsAreRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		ta, tb := memTransport(t, n.NewHost(addrA)), memTransport(t, n.NewHost(addrB))
		var mu sync.Mutex
		seen := map[uint32]int{}
		look := func(b []byte) bool {
			mu.Lock()
			defer mu.Unlock()
			if x, ok := initOf(b); ok {
				seen[x.Tag]++
				seen[x.TSN]++
			}
			return true
		}
		n.SetLink(addrA, addrB, sctptest.Link{Filter: look})
		n.SetLink(addrB, addrA, sctptest.Link{Filter: look})
		eb, err := tb.Listen(serverPort, &sctp.Config{Backlog: 100})
		if err != nil {
			t.Fatal(err)
		}
		const dials = 20
		for range dials {
			ea, err := ta.Listen(0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ea.Connect(context.Background(), eb.Addr()); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		// Of 80 random numbers of 32 bits two are equal once in a million runs.
		if len(seen) != 4*dials || seen[0] > 0 {
			t.Errorf("%d numbers in %d INITs and INIT ACKs, %d of them 0", len(seen), 2*dials, seen[0])
		}
		small := 0
		for v := range seen {
			if v < 1<<28 {
				small++
			}
		}
		if small > dials {
			t.Errorf("%d of %d are less than a sixteenth of the range", small, len(seen))
		}
	})
}

// RFC 9260, Section 5.1.3: the secret key of cookies is random: what one
// transport signed another one does not accept.
func TestCookieSecretIsRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		tb, tc := memTransport(t, n.NewHost(addrB)), memTransport(t, n.NewHost("10.0.0.3"))
		for _, tr := range []*sctp.Transport{tb, tc} {
			if _, err := tr.Listen(serverPort, nil); err != nil {
				t.Fatal(err)
			}
		}
		pc, err := n.NewHost(addrA).ListenPacket(":9899")
		if err != nil {
			t.Fatal(err)
		}
		defer pc.Close()
		send := func(to string, tag uint32, chunk []byte) {
			t.Helper()
			b := append(wire.AppendHeader(nil, wire.Header{SrcPort: 77, DstPort: serverPort, VTag: tag}), chunk...)
			wire.SetChecksum(b)
			if _, err := pc.WriteToUDPAddrPort(b, netip.MustParseAddrPort(to+":9899")); err != nil {
				t.Fatal(err)
			}
		}
		send(addrB, 0, wire.AppendInit(nil, wire.Init{Tag: 5, RWND: 65536, OutStreams: 1, InStreams: 1, TSN: 1}))
		buf := make([]byte, 2000)
		pc.SetReadDeadline(time.Now().Add(time.Minute))
		k, _, err := pc.ReadFromUDPAddrPort(buf)
		if err != nil {
			t.Fatal(err)
		}
		x, ok := initOf(buf[:k])
		if !ok {
			t.Fatalf("answer %s", wire.Describe(buf[:k]))
		}
		var cookie []byte
		for it := wire.NewParams(x.Params); it.Next(); {
			if p := it.Param(); p.Type == wire.ParamStateCookie {
				cookie = p.Value
			}
		}
		send("10.0.0.3", x.Tag, wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: cookie}))
		send(addrB, x.Tag, wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: cookie}))
		time.Sleep(time.Second)
		synctest.Wait()
		if b, c := tb.Stats().Associations, tc.Stats().Associations; b != 1 || c != 0 {
			t.Errorf("%d associations with who made the cookie, %d with another one; want 1 and 0", b, c)
		}
	})
}
