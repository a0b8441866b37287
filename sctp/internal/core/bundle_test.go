package core

import (
	"fmt"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 9260, Section 6.1, the Nagle algorithm: with data in flight, what does not fill a
// packet waits for the acknowledgement, and what Fills one does not. Headers and padding
// of chunks are part of the packet.
func TestFullPacketsAreNotHeldBack(t *testing.T) {
	for _, interleave := range []bool{true, false} {
		header := wire.DataHeaderLen
		if interleave {
			header = wire.IDataHeaderLen
		}
		full := 1452 - wire.HeaderLen // of chunks
		least := header + 4           // the smallest chunk
		for _, tc := range []struct {
			name  string
			sizes []int
			leave bool
		}{
			{"exactly full", []int{full - header}, true},
			{"full with padding", []int{full - header - 3}, true},
			{"no room for another chunk", []int{full - header - least + 4}, true},
			{"room for another chunk", []int{full - header - least - 8}, false},
			{"half", []int{full/2 - header}, false},
			{"two halves", []int{full/2 - header, full/2 - header}, true},
			{"small", []int{1}, false},
			{"small ones that fill it", repeat(1, full/least), true},
			{"small ones that do not", repeat(4, full/least-20), false},
			{"more than a packet", []int{full + 1}, true},
		} {
			t.Run(fmt.Sprintf("interleave=%v/%s", interleave, tc.name), func(t *testing.T) {
				p := newPair(t, 770, &Config{Bundle: true, NoPacing: true, NoInterleaving: !interleave, MTU: 1452})
				p.connect()
				p.a.send(0, 10)
				p.a.outbox() // it is in flight
				for _, n := range tc.sizes {
					p.a.send(0, n)
				}
				got := p.a.outbox()
				if (len(got) > 0) != tc.leave {
					t.Errorf("%d packets leave while data is in flight", len(got))
				}
			})
		}
	}
}

// The messages of a segmented send count one by one.
func TestFullSegmentIsNotHeldBack(t *testing.T) {
	for _, count := range []int{10, 72} {
		p := newPair(t, 771, &Config{Bundle: true, NoPacing: true, NoInterleaving: true, MTU: 1452})
		p.connect()
		p.a.send(0, 10)
		p.a.outbox()
		if err := p.a.assoc.Send(p.now, &tx.Message{Body: make([]byte, 4*count), SegmentSize: 4, Unordered: true}); err != nil {
			t.Fatal(err)
		}
		if got := p.a.outbox(); (len(got) > 0) != (count == 72) {
			t.Errorf("%d messages of a segmented send: %d packets leave while data is in flight", count, len(got))
		}
	}
}

func repeat(n, times int) (list []int) {
	for range times {
		list = append(list, n)
	}
	return list
}
