package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

func TestTransferBothWays(t *testing.T) {
	p := newPair(t, 1)
	p.connect()
	p.a.wantEvent(EventUp)
	p.z.wantEvent(EventUp)
	for i := range 50 {
		p.a.send(uint16(i%5), 1+i*97)
		p.z.send(uint16(i%3), 1+i*131)
	}
	p.drive()
	p.wantDelivered()
	if n := p.a.assoc.Stats().Retransmits; n != 0 {
		t.Errorf("%d retransmissions on a perfect network", n)
	}
}

func TestLargeMessage(t *testing.T) {
	p := newPair(t, 2)
	p.connect()
	p.a.send(0, 3<<20)
	p.drive()
	p.wantDelivered()
	if got := p.now; got > clock.Time(30*time.Second) {
		t.Errorf("3 MiB took until %v", time.Duration(got))
	}
}
