package core

import (
	"testing"
	"time"
)

func TestShortBatchesAreCorkedOnBusyLocalPaths(t *testing.T) {
	for _, tc := range []struct {
		name  string
		delay time.Duration
		size  int
		cfg   Config
		holds bool
	}{
		{"local", 50 * time.Microsecond, 200 << 10, Config{}, true},
		{"local, idle", 50 * time.Microsecond, 32 << 10, Config{}, false},
		{"remote", 5 * time.Millisecond, 1 << 20, Config{}, false},
		{"no probes", 50 * time.Microsecond, 200 << 10, Config{NoRACK: true}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPair(t, 1, &tc.cfg)
			p.net.delay = tc.delay
			p.connect()
			for range 20 { // open the window
				p.a.send(1, 200<<10)
				p.drive()
			}
			for range 4 {
				p.a.send(1, tc.size/4)
				p.a.flush()
			}
			p.a.send(1, 10)
			if held := p.a.assoc.ShouldCork(64, 64<<10); held != tc.holds {
				t.Errorf("held back with %d bytes in flight and round trips of %v: %v, want %v",
					p.a.assoc.tx.sb.TotalFlight(), time.Duration(p.a.assoc.tx.baseRTT(0)), held, tc.holds)
			}
			p.drive()
			p.wantDelivered()
		})
	}
}

// The end of one of two messages waits if messages come one after the other, each
// before the one in front of it is acknowledged.
func TestCorkOfTwoMessages(t *testing.T) {
	p := newOpenLocalPair(t)
	q := p.a.assoc.tx.q
	waits := func(n int, want bool) {
		t.Helper()
		p.a.send(1, 70<<10)
		p.a.flush()
		if got := q.Unsent() > 0; got != want {
			t.Errorf("message %d, %d under way: the end waits: %v, want %v", n, q.Messages(), got, want)
		}
	}
	for n := range corkPipelined + 5 {
		waits(n, n >= corkPipelined)
		if !p.driveUntil(time.Second, func() bool { return q.Messages() < 2 }) || q.Empty() {
			t.Fatalf("message %d: %d under way, want 1", n, q.Messages())
		}
	}
	p.drive()
	waits(0, false)
	waits(1, false) // all over again
	p.drive()
	p.wantDelivered()
}

// What waits for acknowledgements that are lost is the first probe.
func TestCorkedEndIsTheLossProbe(t *testing.T) {
	p := newOpenLocalPair(t)
	tx := &p.a.assoc.tx
	for n := range corkPipelined {
		p.driveUntil(time.Second, func() bool { return n == 0 || tx.q.Messages() < 2 })
		p.a.send(1, 70<<10)
		p.a.flush()
	}
	p.net.drop = func(*host, []byte) bool { return true }
	p.advance(time.Millisecond) // the SACKs that are on their way arrive
	p.a.send(1, 70<<10)
	p.a.flush()
	if tx.q.Messages() >= corkMinMessages || tx.q.Unsent() == 0 {
		t.Fatalf("%d messages under way, %d bytes wait", tx.q.Messages(), tx.q.Unsent())
	}
	probes := tx.sb.Stats().Probes
	p.advance(time.Duration(tx.sb.LossDeadline(0) - p.now))
	if probes = tx.sb.Stats().Probes - probes; probes != 1 || tx.q.Unsent() > 0 {
		t.Errorf("after %d probes %d bytes wait", probes, tx.q.Unsent())
	}
	p.net.drop = nil
	p.drive()
	p.wantDelivered()
}

// newOpenLocalPair has a path as between processes, whose window is wide open.
func newOpenLocalPair(t *testing.T) *pair {
	p := newBusyLocalPair(t)
	for range 20 {
		p.a.send(1, 200<<10)
		p.drive()
	}
	return p
}

// newBusyLocalPair has a path as between processes, whose window is open.
func newBusyLocalPair(t *testing.T) *pair {
	p := newPair(t, 1)
	p.net.delay = 50 * time.Microsecond
	p.connect()
	for range 20 {
		p.a.send(1, 100<<10)
		p.drive()
	}
	return p
}

func TestSmallMessagesWaitForFullPacketsOnBusyLocalPaths(t *testing.T) {
	p := newBusyLocalPair(t)
	before := p.a.assoc.Stats().PacketsSent
	for range 1000 {
		p.a.send(1, 20)
		p.a.flush()
	}
	p.drive()
	p.wantDelivered()
	if n := p.a.assoc.Stats().PacketsSent - before; n > 200 {
		t.Errorf("1000 messages of 20 bytes took %d packets, want few", n)
	}
}

// What waits must not wait for an acknowledgement that is itself delayed: many
// chunks in one packet keep nothing back.
func TestNothingWaitsForADelayedSack(t *testing.T) {
	p := newBusyLocalPair(t)
	for range 50 {
		for range 40 {
			p.a.send(1, 8) // one packet
		}
		p.a.flush()
		p.advance(time.Millisecond)
		start := p.now
		p.a.send(1, 8)
		p.a.flush()
		p.advance(time.Millisecond)
		if n := p.a.assoc.tx.q.Unsent(); n != 0 {
			t.Fatalf("%d bytes wait %v after one packet was sent", n, time.Duration(p.now-start))
		}
		p.drive()
	}
	p.wantDelivered()
}
