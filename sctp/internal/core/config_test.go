package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/pmtu"
)

// RFC 9260, Section 16, and the bounds of Sections 3.3.2 and 6.2.
func TestConfigDefaults(t *testing.T) {
	c := (*Config)(nil).withDefaults()
	for _, x := range []struct {
		name      string
		got, want any
	}{
		{"RTO.Initial", c.RTOInitial, time.Second},
		{"RTO.Min", c.RTOMin, time.Second},
		{"RTO.Max", c.RTOMax, 60 * time.Second},
		{"Valid.Cookie.Life", c.CookieLife, 60 * time.Second},
		{"Association.Max.Retrans", c.AssocMaxRetrans, 10},
		{"Path.Max.Retrans", c.PathMaxRetrans, 5},
		{"Max.Init.Retransmits", c.MaxInitRetrans, 8},
		{"HB.interval", c.HBInterval, 30 * time.Second},
		{"SACK.Delay", c.SackDelay, 200 * time.Millisecond},
		{"T5-shutdown-guard", c.ShutdownGuard, 300 * time.Second},
	} {
		if x.got != x.want {
			t.Errorf("%s = %v, want %v", x.name, x.got, x.want)
		}
	}
	c = (&Config{SackDelay: time.Hour, RecvBuffer: 1, MTU: 1 << 20, RTOMin: 2 * time.Second, RTOInitial: time.Millisecond}).withDefaults()
	if c.SackDelay != MaxSackDelay || c.RecvBuffer != MinRecvBuffer || c.MTU != MaxPacket || c.RTOInitial != 2*time.Second {
		t.Errorf("beyond the bounds: %+v", c)
	}
	for in, want := range map[int]int{0: pmtu.MinMTU, 1453: 1452, 1452: 1452, 70000: MaxPacket} {
		if got := clampMTU(in); got != want || got%4 != 0 {
			t.Errorf("clampMTU(%d) = %d, want %d", in, got, want)
		}
	}
}
