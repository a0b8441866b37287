package sctp_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/wire"
)

// A flood of INITs is answered without keeping anything, and with not more than
// three times its bytes.
func TestInitFloodKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		tb := memTransport(t, n.NewHost(addrB))
		if _, err := tb.Listen(serverPort, nil); err != nil {
			t.Fatal(err)
		}
		pc, err := n.NewHost(addrA).ListenPacket(":9899")
		if err != nil {
			t.Fatal(err)
		}
		defer pc.Close()
		const count = 20000
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC() // the second one empties pools
		runtime.ReadMemStats(&before)
		buf := make([]byte, 65536)
		for i := range uint32(count) {
			b := wire.AppendHeader(nil, wire.Header{SrcPort: uint16(1 + i%60000), DstPort: serverPort})
			b = wire.AppendInit(b, wire.Init{Tag: i + 1, RWND: 65536, OutStreams: 1, InStreams: 1, TSN: i})
			wire.SetChecksum(b)
			if _, err := pc.WriteToUDPAddrPort(b, netip.MustParseAddrPort(addrB+":9899")); err != nil {
				t.Fatal(err)
			}
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
				pc.SetReadDeadline(time.Now())
				for err := error(nil); err == nil; {
					_, _, err = pc.ReadFromUDPAddrPort(buf)
				}
			}
		}
		synctest.Wait()
		runtime.GC()
		runtime.GC() // the second one empties pools
		runtime.ReadMemStats(&after)
		in, out := n.Counters(addrA, addrB), n.Counters(addrB, addrA)
		t.Logf("%d INITs of %d bytes, %d answers of %d bytes", in.Sent, in.Bytes/in.Sent, out.Sent, out.Bytes/out.Sent)
		if st := tb.Stats(); st.Associations != 0 {
			t.Errorf("%d associations", st.Associations)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
			t.Errorf("heap grew by %d bytes", grown)
		}
		if limit := 3 * in.Bytes; out.Bytes > limit || out.Sent < count/2 {
			t.Errorf("%d bytes came back in %d packets, want at most %d in half as many as went in", out.Bytes, out.Sent, limit)
		}
	})
}

// Nothing that strangers send disturbs an association or the transport.
func TestNoiseIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		p := &pair{t: t, net: n}
		p.ta = memTransport(t, n.NewHost(addrA))
		p.tb = memTransport(t, n.NewHost(addrB))
		var captured [][]byte
		n.SetLink(addrA, addrB, sctptest.Link{Filter: func(b []byte) bool {
			captured = append(captured, append([]byte(nil), b...))
			return true
		}})
		p.connect(nil, nil)
		ctx := context.Background()
		buf := make([]byte, 10000)
		for range 20 {
			if err := p.a.Send(ctx, pattern(5000), sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			recvMessage(t, p.b, buf)
		}
		pc, err := n.NewHost("10.0.0.3").ListenPacket(":9899")
		if err != nil {
			t.Fatal(err)
		}
		defer pc.Close()
		rng := rand.New(rand.NewPCG(1, 2))
		to := netip.MustParseAddrPort(addrB + ":9899")
		for i := range 20000 {
			b := append([]byte(nil), captured[rng.IntN(len(captured))]...)
			for range rng.IntN(4) {
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			}
			b = b[:rng.IntN(len(b)+1)]
			if rng.IntN(2) == 0 {
				wire.SetChecksum(b)
			}
			if _, err := pc.WriteToUDPAddrPort(b, to); err != nil {
				t.Fatal(err)
			}
			if i%100 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if err := p.b.Err(); err != nil {
			t.Fatalf("the association ended: %v", err)
		}
		msg := pattern(9000)
		if err := p.a.Send(ctx, msg, sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		recvMessage(t, p.b, buf)
		if st := p.tb.Stats(); st.Associations > 1+len(captured) {
			t.Errorf("%d associations", st.Associations)
		}
	})
}

// A COOKIE ECHO with a message, captured and sent again within the life of its
// cookie, once the association is gone: it sets up no other with the same tags and
// TSNs, which would deliver the message again (RFC 9260, Section 5.3.1).
func TestReplayedCookieSetsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		p := &pair{t: t, net: n}
		ha := n.NewHost(addrA)
		p.ta, p.tb = memTransport(t, ha), memTransport(t, n.NewHost(addrB))
		var echo []byte
		n.SetLink(addrA, addrB, sctptest.Link{Filter: func(b []byte) bool {
			if len(b) > wire.HeaderLen && wire.ChunkType(b[wire.HeaderLen]) == wire.ChunkCookieEcho && echo == nil {
				echo = append([]byte(nil), b...)
			}
			return true
		}})
		p.connect(nil, nil)
		ctx := context.Background()
		buf := make([]byte, 100)
		if err := p.a.Send(ctx, []byte("pay 100"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		recvMessage(t, p.b, buf)
		if err := p.a.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		<-p.b.Done()
		p.ta.Close()
		pc, err := ha.ListenPacket(":9899")
		if err != nil {
			t.Fatal(err)
		}
		defer pc.Close()
		for range 5 {
			if _, err := pc.WriteToUDPAddrPort(echo, netip.MustParseAddrPort(addrB+":9899")); err != nil {
				t.Fatal(err)
			}
			pc.SetReadDeadline(time.Now().Add(time.Second))
			k, _, err := pc.ReadFromUDPAddrPort(buf)
			if err != nil {
				t.Fatal(err)
			}
			it := wire.NewChunks(buf[wire.HeaderLen:k])
			if !it.Next() || it.Chunk().Type != wire.ChunkError {
				t.Fatalf("the answer is %s, want an ERROR", wire.Describe(buf[:k]))
			}
			if st := p.tb.Stats(); st.Associations != 0 {
				t.Fatalf("%d associations", st.Associations)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

func TestIdleAssociationsAreSmall(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("objects have other sizes with the race detector")
	}
	synctest.Test(t, func(t *testing.T) {
		const count, limit = 10_000, 24 << 10
		n := sctptest.NewNetwork(1)
		ta, tb := memTransport(t, n.NewHost(addrA)), memTransport(t, n.NewHost(addrB))
		eb, err := tb.Listen(serverPort, &sctp.Config{OneToMany: true})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC() // the second one empties pools
		runtime.ReadMemStats(&before)
		goroutines := runtime.NumGoroutine()
		var keep []*sctp.Association
		for range count {
			e, err := ta.Listen(0, &sctp.Config{Backlog: -1})
			if err != nil {
				t.Fatal(err)
			}
			a, err := e.Connect(context.Background(), eb.Addr())
			if err != nil {
				t.Fatal(err)
			}
			keep = append(keep, a)
		}
		runtime.GC()
		runtime.GC() // the second one empties pools
		runtime.ReadMemStats(&after)
		per := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / (2 * count)
		t.Logf("%d bytes per association", per)
		if per > limit {
			t.Errorf("%d bytes per idle association, want at most %d", per, limit)
		}
		if n := runtime.NumGoroutine() - goroutines; n > 5 {
			t.Errorf("%d goroutines for %d associations", n, count)
		}
		runtime.KeepAlive(keep)
	})
}

// Packets out of the blue are answered at a limited rate at a port where somebody listens,
// too; INITs, which keep nothing, always.
func TestOOTBPacketsAtAListeningPortAreLimited(t *testing.T) {
	for _, listening := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := sctptest.NewNetwork(1)
			tb := memTransport(t, n.NewHost(addrB))
			port := uint16(serverPort)
			if _, err := tb.Listen(port, nil); err != nil {
				t.Fatal(err)
			}
			if !listening {
				port++
			}
			pc, err := n.NewHost(addrA).ListenPacket(":9899")
			if err != nil {
				t.Fatal(err)
			}
			defer pc.Close()
			const count = 500
			send := func(tag uint32, chunk func(b []byte) []byte) uint64 {
				t.Helper()
				before := n.Counters(addrB, addrA).Sent
				for range count {
					b := chunk(wire.AppendHeader(nil, wire.Header{SrcPort: 7, DstPort: port, VTag: tag}))
					wire.SetChecksum(b)
					if _, err := pc.WriteToUDPAddrPort(b, netip.MustParseAddrPort(addrB+":9899")); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				return n.Counters(addrB, addrA).Sent - before
			}
			for name, chunk := range map[string]func(b []byte) []byte{
				"DATA": func(b []byte) []byte {
					return wire.AppendData(b, wire.Data{TSN: 1, Begin: true, End: true, Payload: []byte("abcd")})
				},
				"SHUTDOWN ACK": wire.AppendShutdownAck,
			} {
				if got := send(77, chunk); got < 50 || got > 100 {
					t.Errorf("listening %v: %d answers to %d packets with %s at once, want a burst of 100", listening, got, count, name)
				}
				time.Sleep(time.Second) // the bucket is full again
			}
			got := send(0, func(b []byte) []byte {
				return wire.AppendInit(b, wire.Init{Tag: 9, RWND: 65536, OutStreams: 1, InStreams: 1, TSN: 1})
			})
			if listening && got != count || !listening && got > 100 {
				t.Errorf("listening %v: %d answers to %d INITs", listening, got, count)
			}
			if st := tb.Stats(); st.OutOfTheBlue < count {
				t.Errorf("listening %v: %d packets out of the blue counted", listening, st.OutOfTheBlue)
			}
		})
	}
}
