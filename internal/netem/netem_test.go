package netem

import (
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// arrival is one delivered packet.
type arrival struct {
	at       Time
	net, to  int
	from     int
	sequence byte
}

// harness sends packets through a fabric and records what arrives.
type harness struct {
	t        *testing.T
	f        *Fabric
	arrivals []arrival
	now      Time
}

func newHarness(t *testing.T, p Params) *harness {
	return &harness{t: t, f: NewFabric(2, 3, p, 1)}
}

func (h *harness) send(from, to, size int, seq byte) {
	pkt := make([]byte, size)
	pkt[0], pkt[size-1] = 0x45, seq
	h.f.Inject(h.now, 0, from, to, pkt)
}

func (h *harness) drain() {
	for {
		at, ok := h.f.Next()
		if !ok {
			return
		}
		h.now = max(h.now, at)
		h.f.Advance(h.now, func(_ Time, net, from, to int, pkt []byte) {
			h.arrivals = append(h.arrivals, arrival{h.now, net, to, from, pkt[len(pkt)-1]})
		})
	}
}

func TestRateAndDelay(t *testing.T) {
	h := newHarness(t, Params{Rate: 1e9, Delay: 25 * time.Microsecond})
	for i := range byte(3) {
		h.send(0, 1, 1250, i) // 10 µs each on the line, out of the host and into the next
	}
	h.drain()
	for i, want := range []Time{45_000, 55_000, 65_000} {
		if got := h.arrivals[i].at; got != want {
			t.Errorf("packet %d arrives at %d ns, want %d", i, got, want)
		}
	}
}

func TestQueueOverflows(t *testing.T) {
	h := newHarness(t, Params{Rate: 1e6, Queue: 3000})
	for i := range byte(10) {
		h.send(0, 1, 1000, i)
	}
	h.drain()
	st := h.f.Stats(0, 0)
	// One on the line and three waiting; the rest finds the queue full.
	if len(h.arrivals) != 3 && len(h.arrivals) != 4 || st.Overflowed != uint64(10-len(h.arrivals)) {
		t.Errorf("%d arrive, %d overflow", len(h.arrivals), st.Overflowed)
	}
	if st.PeakBacklogBytes < 2000 {
		t.Errorf("peak backlog = %d, want the queue nearly full", st.PeakBacklogBytes)
	}
}

func TestIncastSharesTheReceiversLine(t *testing.T) {
	h := newHarness(t, Params{Rate: 1e9})
	h.send(0, 2, 1250, 1)
	h.send(1, 2, 1250, 2)
	h.drain()
	if got := h.arrivals[1].at - h.arrivals[0].at; got != 10_000 {
		t.Errorf("two senders' packets arrive %d ns apart, want 10000", got)
	}
}

func TestProbabilities(t *testing.T) {
	const n = 20000
	p := Params{Loss: 0.05, Duplicate: 0.03, Reorder: 0.02, Corrupt: 0.01, Delay: time.Millisecond}
	h := newHarness(t, p)
	for i := range n {
		h.now += 1000
		h.send(0, 1, 100, byte(i))
	}
	h.drain()
	st := h.f.Stats(0, 0)
	for _, c := range []struct {
		name string
		got  uint64
		want float64
	}{
		{"lost", st.Lost, p.Loss}, {"duplicated", st.Duplicated, p.Duplicate},
		{"reordered", st.Reordered, p.Reorder}, {"corrupted", st.Corrupted, p.Corrupt},
	} {
		if got := float64(c.got) / n; math.Abs(got-c.want) > c.want/4 {
			t.Errorf("share %s = %.4f, want about %.4f", c.name, got, c.want)
		}
	}
	if int(st.Delivered) != len(h.arrivals) || st.Delivered != n-st.Lost+st.Duplicated {
		t.Errorf("delivered %d, arrived %d, lost %d, duplicated %d", st.Delivered, len(h.arrivals), st.Lost, st.Duplicated)
	}
}

func TestBurstsHaveTheMeanLength(t *testing.T) {
	const n = 200_000
	fl := NewFabric(1, 2, Params{}, 3).ports[0][0].flows[1]
	p := Params{Loss: 0.02, Burst: 5}
	lost, bursts, before := 0, 0, false
	for range n {
		now := fl.lose(&p)
		if now {
			lost++
			if !before {
				bursts++
			}
		}
		before = now
	}
	if share := float64(lost) / n; share < 0.014 || share > 0.026 {
		t.Errorf("loss = %.4f, want about 0.02", share)
	}
	if mean := float64(lost) / float64(bursts); mean < 4 || mean > 6 {
		t.Errorf("mean burst = %.2f, want about 5", mean)
	}
}

func TestGilbertElliottLosesByState(t *testing.T) {
	const n = 300_000
	for _, g := range []Gilbert{{0.01, 0.25, 1, 0}, {0.02, 0.1, 0.5, 0.01}, {0.5, 0.5, 0.2, 0.1}} {
		fl := NewFabric(1, 2, Params{}, 5).ports[0][0].flows[1]
		p := Params{Gilbert: g, Loss: 0.9}
		lost := 0
		for range n {
			if fl.lose(&p) {
				lost++
			}
		}
		if got, want := float64(lost)/n, g.Mean(); math.Abs(got-want) > want/10 {
			t.Errorf("%+v loses %.4f, want about %.4f", g, got, want)
		}
	}
}

func TestDownRateIsTheHostsOwn(t *testing.T) {
	h := newHarness(t, Params{Rate: 1e9})
	h.f.SetParams(0, 1, Params{Rate: 1e9, DownRate: 1e8, DownQueue: 2000})
	for i := range byte(5) {
		h.send(0, 1, 1250, i) // 10 µs out of host 0, 100 µs into host 1
	}
	h.send(1, 2, 1250, 9)
	h.drain()
	if got := h.arrivals[0]; got.from != 1 || got.at != 20_000 {
		t.Errorf("host 1 sends at its own rate: %+v", got)
	}
	if got := h.arrivals[1].at; got != 110_000 {
		t.Errorf("the first packet arrives at %d ns, want 110000", got)
	}
	if st := h.f.Stats(0, 0); st.Overflowed == 0 {
		t.Error("the short queue into host 1 did not overflow")
	}
}

func TestSetForOneDirectionOfAPair(t *testing.T) {
	h := newHarness(t, Params{Delay: time.Millisecond})
	c, err := ParseChange("set net 0 host 0 to 1 delay 5ms")
	if err == nil {
		err = c.Apply(h.f)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.send(0, 1, 100, 1)
	h.send(1, 0, 100, 2)
	h.send(0, 2, 100, 3)
	h.drain()
	for _, a := range h.arrivals {
		want := Time(time.Millisecond)
		if a.sequence == 1 {
			want = Time(5 * time.Millisecond)
		}
		if a.at != want {
			t.Errorf("packet %d arrives at %d ns, want %d", a.sequence, a.at, want)
		}
	}
	all, _ := ParseChange("set delay 2ms")
	if all.Apply(h.f); h.f.FlowParams(0, 0, 1).Delay != 2*time.Millisecond {
		t.Error("what is set for all does not replace what was set for one")
	}
}

func TestSameSeedSameFate(t *testing.T) {
	run := func(seed uint64) string {
		var b bytes.Buffer
		f := NewFabric(1, 2, Params{Loss: 0.3, Duplicate: 0.2, Jitter: time.Millisecond, Corrupt: 0.1}, seed)
		for i := range 200 {
			f.Inject(Time(i)*1000, 0, 0, 1, []byte{0x45, 1, 2, 3, byte(i), 19: 0, 40: 7})
		}
		f.Advance(math.MaxInt64, func(_ Time, _, _, _ int, pkt []byte) { fmt.Fprintf(&b, "%x ", pkt) })
		return b.String()
	}
	if first, again := run(7), run(7); first != again {
		t.Error("the same seed gives another run")
	}
	if run(7) == run(8) {
		t.Error("another seed gives the same run")
	}
}

func TestJitterKeepsTheOrder(t *testing.T) {
	h := newHarness(t, Params{Delay: time.Millisecond, Jitter: 10 * time.Millisecond})
	for i := range byte(200) {
		h.send(0, 1, 50, i)
		h.now += 1000
	}
	h.drain()
	for i, a := range h.arrivals {
		if int(a.sequence) != i {
			t.Fatalf("packet %d arrives as number %d", a.sequence, i)
		}
	}
}

func TestCutAndRestore(t *testing.T) {
	h := newHarness(t, Params{Delay: time.Millisecond})
	do := func(s string) {
		t.Helper()
		c, err := ParseChange(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(h.f); err != nil {
			t.Fatal(err)
		}
	}
	h.send(0, 1, 50, 1)
	do("cut net 0 host 1") // with a packet under way
	h.send(0, 1, 50, 2)
	h.send(0, 2, 50, 3)
	h.drain()
	do("restore")
	h.send(0, 1, 50, 4)
	do("set host 0 loss 100%")
	h.send(0, 1, 50, 5)
	h.drain()
	var got []byte
	for _, a := range h.arrivals {
		got = append(got, a.sequence)
	}
	if !bytes.Equal(got, []byte{3, 4}) {
		t.Errorf("arrived %v, want 3 and 4", got)
	}
	if st := h.f.Stats(0, 0); st.Cut != 2 || st.Lost != 1 {
		t.Errorf("cut %d, lost %d; want 2, 1", st.Cut, st.Lost)
	}
}

func TestDropsWhatCannotTravel(t *testing.T) {
	h := newHarness(t, Params{MTU: 1500})
	h.send(0, 1, 1501, 1)
	h.send(0, 9, 100, 2)
	h.send(0, -1, 100, 3)
	h.f.Inject(0, 0, 0, 1, make([]byte, MaxPacket+1))
	h.drain()
	if st := h.f.Stats(0, 0); len(h.arrivals) != 0 || st.TooLong != 1 || st.NoRoute != 3 {
		t.Errorf("arrived %d, too long %d, no route %d", len(h.arrivals), st.TooLong, st.NoRoute)
	}
}

func TestParse(t *testing.T) {
	for _, s := range []string{"at 5s cut net 1", "0s restore host 2 net 0", "1.5ms set loss 1% delay 10ms rate 100mbit", "at 1s set burst 4 dup 0.5 reorder 1% corrupt 0 mtu 1500 queue 64KiB jitter 1us",
		"0s set host 0 to 1 gemodel 1%,25%", "0s set gemodel 1%,25%,90%,0.1%", "0s set gemodel 0", "0s set downrate 10mbit downqueue 64KiB"} {
		if _, err := ParseStep(s); err != nil {
			t.Errorf("ParseStep(%q): %v", s, err)
		}
	}
	for _, s := range []string{
		"", "cut", "at 5s", "-1s cut", "5s dance", "5s cut net", "5s cut net x", "5s cut net -1", "5s cut me", "5s set", "5s set loss",
		"5s set loss 101%", "5s set loss -1", "5s set loss NaN", "5s set delay 2h", "5s set mtu 10", "5s set queue 0", "5s set rate fast", "5s set burst 0", "5s set colour red",
		"5s set gemodel 1%", "5s set gemodel 1%,2%,3%,4%,5%", "5s set gemodel a,b", "5s set downqueue 0", "5s set to 1 rate 1gbit", "5s cut to 1", "5s set to x loss 1%",
	} {
		if _, err := ParseStep(s); err == nil {
			t.Errorf("ParseStep(%q) was taken", s)
		}
	}
	c, _ := ParseChange("cut net 5")
	if c.Check(2, 2) == nil || c.Apply(NewFabric(2, 2, Params{}, 1)) == nil {
		t.Error("a network that does not exist was cut")
	}
}

func ExampleFabric() {
	f := NewFabric(1, 2, Params{Rate: 1e9, Delay: 25 * time.Microsecond}, 1)
	f.Inject(0, 0, 0, 1, make([]byte, 1250))
	for at, ok := f.Next(); ok; at, ok = f.Next() {
		f.Advance(at, func(_ Time, net, from, to int, pkt []byte) {
			fmt.Printf("%d bytes from host %d to host %d after %v\n", len(pkt), from, to, time.Duration(at))
		})
	}
	// Output: 1250 bytes from host 0 to host 1 after 45µs
}

// Packets under way need no new memory once there were as many before.
func TestFabricAllocatesNothing(t *testing.T) {
	f := NewFabric(1, 2, Params{Rate: 1e9, Delay: 25 * time.Microsecond, Loss: 0.01, Duplicate: 0.01, Reorder: 0.01}, 1)
	pkt := make([]byte, 1500)
	now := Time(0)
	send := func() {
		for range 100 {
			f.Inject(now, 0, 0, 1, pkt)
		}
		now += 2_000_000
		f.Advance(now, func(Time, int, int, int, []byte) {})
	}
	for range 100 {
		send()
	}
	if n := testing.AllocsPerRun(100, send); n != 0 {
		t.Errorf("%v allocations per 100 packets", n)
	}
}

// Events come out in order of time and, within one, as they went in.
func TestEventHeap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h eventHeap
	var model []*event
	for order := range uint64(20_000) {
		if len(model) > 0 && rng.IntN(100) < 48 {
			slices.SortStableFunc(model, func(a, b *event) int { return cmp.Compare(a.at, b.at) })
			if e := heap.Pop(&h).(*event); e != model[0] {
				t.Fatalf("event %d at %d, want %d at %d", e.order, e.at, model[0].order, model[0].at)
			}
			model = model[1:]
			continue
		}
		e := &event{at: Time(rng.IntN(50)), order: order}
		heap.Push(&h, e)
		model = append(model, e)
	}
}

func BenchmarkFabric(b *testing.B) {
	f := NewFabric(1, 2, Params{Rate: 1e9, Delay: 25 * time.Microsecond, Loss: 0.01}, 1)
	pkt := make([]byte, 1500)
	now := Time(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 12_000
		f.Inject(now, 0, 0, 1, pkt)
		f.Advance(now, func(Time, int, int, int, []byte) {})
	}
}
