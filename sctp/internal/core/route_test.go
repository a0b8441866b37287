package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// Messages of all sizes that name their address go there at first, with and without
// concurrent multipath transfer and interleaving, whatever waits between them, and
// with different schedulers; those that do not are delivered, too.
func TestMessagesGoWhereTheySay(t *testing.T) {
	for i := range 16 {
		cfg := fastConfig()
		cfg.Multipath, cfg.NoInterleaving, cfg.NoPacing = i&1 != 0, i&2 != 0, i&4 != 0
		if i&8 != 0 {
			cfg.Scheduler = tx.SchedRRPacket
		}
		t.Run(fmt.Sprintf("multipath=%v/plain=%v/unpaced=%v/scheduler=%d", cfg.Multipath, cfg.NoInterleaving, cfg.NoPacing, cfg.Scheduler), func(t *testing.T) {
			p := newMultihomed(t, uint64(800+i), cfg)
			p.connect()
			p.confirmAll()
			count, seen := map[int]int{}, map[uint32]bool{}
			p.net.deaf = func(x *Packet) bool { // it sees all packets
				it := wire.NewChunks(x.Data[wire.HeaderLen:])
				for it.Next() {
					c := it.Chunk()
					if c.Type != wire.ChunkData && c.Type != wire.ChunkIData {
						continue
					}
					parse := wire.ParseData
					if c.Type == wire.ChunkIData {
						parse = wire.ParseIData
					}
					d, err := parse(c)
					if err != nil {
						t.Error(err)
					}
					if d.SID < 2 && x.Local != p.z.local[d.SID] && !seen[d.TSN] {
						t.Errorf("stream %d: a chunk goes to %v", d.SID, x.Local)
					}
					seen[d.TSN] = true
					count[int(d.SID)]++
				}
				return false
			}
			sent := 0
			for n := range 120 {
				m := &tx.Message{SID: uint16(p.rng.IntN(3)), Body: make([]byte, 1+p.rng.IntN(1<<p.rng.IntN(13))), Force: true}
				if m.SID < 2 {
					m.Remote = p.z.local[m.SID]
				}
				if n%10 == 9 && m.SID == 2 {
					m.Lifetime = 1 // dropped, unless it is sent at once
				}
				if err := p.a.assoc.Send(p.now, m); err != nil {
					t.Fatal(err)
				}
				sent += len(m.Body)
				if p.rng.IntN(10) == 0 {
					p.advance(time.Duration(p.rng.IntN(20)) * time.Millisecond)
				}
				if err := checkInvariants(p.a.assoc); err != nil {
					t.Fatal(err)
				}
			}
			p.drive()
			for sid := range 3 {
				if count[sid] == 0 {
					t.Errorf("no chunk of stream %d was sent", sid)
				}
			}
		})
	}
}

// An address that is removed, or not the peer's, takes no messages; what is queued
// for it takes another one.
func TestMessagesForRemovedAddress(t *testing.T) {
	cfg := fastConfig()
	p := newMultihomed(t, 830, cfg)
	p.connect()
	p.confirmAll()
	a, second := p.a.assoc, p.z.local[1]
	if err := a.Send(p.now, &tx.Message{Body: []byte("x"), Remote: addrPort("10.9.9.9:9899")}); err != ErrPath {
		t.Errorf("to an address of nobody's: %v", err)
	}
	for range 50 {
		if err := a.Send(p.now, &tx.Message{Body: make([]byte, 1000), Remote: second, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	p.a.flush()
	if f := a.tx.sb.Flight(1); f == 0 || !a.tx.q.Routed() {
		t.Fatalf("%d bytes in flight, messages wait %v", f, a.tx.q.Routed())
	}
	a.removePath(1)
	if err := checkInvariants(a); err != nil || a.tx.q.Routed() {
		t.Errorf("messages are for a path that is gone: %v", err)
	}
	if err := a.Send(p.now, &tx.Message{Body: []byte("x"), Remote: second}); err != ErrPath {
		t.Errorf("to an address that was removed: %v", err)
	}
	p.drive()
	if got := len(ledgerOf(p.z.in, 0).ordered); got != 50 {
		t.Errorf("%d of 50 messages came", got)
	}
}

// A message that expires, which was the next and named an address, does not keep the
// one behind it from being sent.
func TestExpiredDirectedMessage(t *testing.T) {
	p := newMultihomed(t, 831, fastConfig())
	p.connect()
	p.confirmAll()
	p.drive()
	a := p.a.assoc
	for _, m := range []*tx.Message{
		{Body: []byte("late"), Remote: p.z.local[1], Lifetime: 1},
		{SID: 1, Body: []byte("on time")},
	} {
		if err := a.Send(p.now, m); err != nil {
			t.Fatal(err)
		}
	}
	p.now++
	p.drive()
	if got := len(ledgerOf(p.z.in, 1).ordered); got != 1 {
		t.Errorf("%d messages came, want 1", got)
	}
	if got := len(ledgerOf(p.z.in, 0).ordered); got != 0 {
		t.Errorf("the expired message came")
	}
}
