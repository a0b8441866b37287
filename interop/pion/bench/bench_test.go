package main

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// Each kind of connection carries both measurements, also with loss and delay.
func TestMeasure(t *testing.T) {
	for _, args := range [][]string{
		{"-conn", "memory,udp,dtls,webrtc"},
		{"-conn", "memory,udp,dtls,webrtc", "-loss", "1%", "-delay", "1ms"},
	} {
		o, err := parse(append(args, "-echo", "-time", "100ms"))
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range o.kinds {
			r, err := o.measure(kind)
			if err != nil {
				t.Fatal(err)
			}
			if r.Below != "weft" || r.Mbps <= 0 || r.Echoes == 0 || r.EchoP99 < r.EchoP50 || r.EchoP50 <= 0 {
				t.Errorf("%+v", r)
			}
			if least := 2 * o.link.delay; r.EchoP50 < float64(least.Microseconds()) {
				t.Errorf("%s: p50 is %v µs, the link takes %v", kind, r.EchoP50, least)
			}
		}
	}
}

func TestRaw(t *testing.T) {
	o, err := parse([]string{"-conn", "memory,udp,dtls", "-raw", "-time", "50ms"})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range o.kinds {
		if r, err := o.measure(kind); err != nil || r.Mbps <= 0 || r.Below != "nothing" {
			t.Errorf("%s: %+v, %v", kind, r, err)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-loss", "100%"}, {"-loss", "x"}, {"-delay", "-1s"}, {"-time", "0"}, {"-size", "0"}, {"-raw", "-echo"}, {"more"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	o, err := parse([]string{"-conn", "carrier pigeon"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.measure(o.kinds[0]); err == nil {
		t.Error("an unknown kind is taken")
	}
}

// A link keeps its delay and, about, its loss.
func TestLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10000
		start, got := time.Now(), 0
		p := newPath(link{loss: 0.1, delay: 20 * time.Millisecond}, func(b []byte, _ netip.AddrPort) (int, error) {
			if d := time.Since(start); d != 20*time.Millisecond || len(b) != 100 {
				t.Errorf("%d bytes after %v", len(b), d)
			}
			got++
			return len(b), nil
		})
		for range n {
			if _, err := p.write(make([]byte, 100), netip.AddrPort{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if got < n*88/100 || got > n*92/100 { // six standard deviations
			t.Errorf("%d of %d packets came", got, n)
		}
		p.close()
		synctest.Wait()
	})
}

func TestMedian(t *testing.T) {
	m := median([]result{{Mbps: 3, EchoP99: 1}, {Mbps: 1, EchoP99: 3}, {Mbps: 2, EchoP99: 9}})
	if m.Mbps != 2 || m.EchoP99 != 3 {
		t.Errorf("%+v", m)
	}
	if m := median([]result{{Mbps: 1}, {Mbps: 2}}); m.Mbps != 1.5 {
		t.Errorf("%+v", m)
	}
}
