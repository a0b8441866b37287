package netem

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// MaxPacket is the longest packet that a Fabric takes.
const MaxPacket = 65535

// Time is a point on the owner's monotonic clock, in nanoseconds.
type Time int64

// Stats counts what happened to the packets from one host into one network.
type Stats struct {
	Sent             uint64 `json:"sent"` // handed to the network
	SentBytes        uint64 `json:"sent_bytes"`
	Delivered        uint64 `json:"delivered"`  // arrived somewhere
	Lost             uint64 `json:"lost"`       // by chance
	Overflowed       uint64 `json:"overflowed"` // queue full
	TooLong          uint64 `json:"too_long"`   // beyond the MTU
	Cut              uint64 `json:"cut"`        // the network was cut
	NoRoute          uint64 `json:"no_route"`   // for no host of this network
	Duplicated       uint64 `json:"duplicated"`
	Reordered        uint64 `json:"reordered"`
	Corrupted        uint64 `json:"corrupted"`
	PeakBacklogBytes int    `json:"peak_backlog_bytes"` // longest queue seen, on the way out
}

// line is one direction of a port: bits leave it one after the other.
type line struct {
	rate  float64
	queue int
	busy  Time // until when it is sending
}

// take accepts n bytes and returns when their last bit has left, or false when
// the queue is full.
func (l *line) take(now Time, n int) (left Time, backlog int, ok bool) {
	if l.rate == 0 {
		return now, 0, true
	}
	start := max(now, l.busy)
	backlog = int(float64(start-now) * l.rate / 8e9)
	queue := l.queue
	if queue == 0 {
		queue = DefaultQueue
	}
	if backlog > 0 && backlog+n > queue {
		return 0, backlog, false
	}
	l.busy = start + Time(float64(n)*8e9/l.rate)
	return l.busy, backlog, true
}

// flow is what one host sends to one other.
type flow struct {
	rng    *rand.PCG
	inLoss bool    // in a burst, or in the bad state
	last   Time    // arrival of the latest packet: jitter keeps the order
	params *Params // other than the port's; nil: those
}

// port joins one host to one network.
type port struct {
	params   Params
	up, down line
	cut      bool
	flows    []flow // by destination
	stats    Stats
}

// event is a packet on its way.
type event struct {
	at      Time
	order   uint64 // among events of one time
	net     int
	from    int
	to      int
	arrived bool // at the switch's port to its destination; else it is under way there
	pkt     []byte
}

// Fabric is a number of networks, each joining hosts. It is not safe for
// concurrent use.
type Fabric struct {
	ports  [][]port // by network and host
	events eventHeap
	order  uint64
	free   []*event
}

// NewFabric returns nets networks of hosts hosts with the same parameters.
func NewFabric(nets, hosts int, p Params, seed uint64) *Fabric {
	f := new(Fabric)
	for range nets {
		f.AddNet(hosts, p, seed)
	}
	return f
}

// AddNet adds a network of hosts hosts, and returns its number.
func (f *Fabric) AddNet(hosts int, p Params, seed uint64) int {
	n := len(f.ports)
	ports := make([]port, hosts)
	for h := range ports {
		pt := &ports[h]
		pt.flows = make([]flow, hosts)
		for to := range pt.flows {
			pt.flows[to].rng = rand.NewPCG(seed, uint64(n)<<40|uint64(h)<<20|uint64(to))
		}
		pt.set(p)
	}
	f.ports = append(f.ports, ports)
	return n
}

func (pt *port) set(p Params) {
	pt.params = p
	pt.up.rate, pt.up.queue = p.Rate, p.Queue
	pt.down.rate, pt.down.queue = p.Rate, p.Queue
	if p.DownRate > 0 {
		pt.down.rate = p.DownRate
	}
	if p.DownQueue > 0 {
		pt.down.queue = p.DownQueue
	}
}

// Nets returns the number of networks.
func (f *Fabric) Nets() int { return len(f.ports) }

// Hosts returns the number of hosts of a network.
func (f *Fabric) Hosts(net int) int { return len(f.ports[net]) }

// Params returns the parameters of one port.
func (f *Fabric) Params(net, host int) Params { return f.ports[net][host].params }

// SetParams changes the parameters of one port, for packets sent from now on, to
// all other hosts.
func (f *Fabric) SetParams(net, host int, p Params) {
	pt := &f.ports[net][host]
	pt.set(p)
	for to := range pt.flows {
		pt.flows[to].params = nil
	}
}

// FlowParams returns the parameters for what one host sends to one other.
func (f *Fabric) FlowParams(net, from, to int) Params {
	pt := &f.ports[net][from]
	if p := pt.flows[to].params; p != nil {
		return *p
	}
	return pt.params
}

// SetFlowParams changes the parameters for what one host sends to one other from
// now on. The rates and queues of p have no effect: they are the ports'.
func (f *Fabric) SetFlowParams(net, from, to int, p Params) {
	f.ports[net][from].flows[to].params = &p
}

// SetCut cuts a host off one network, or joins it again. Packets under way to a
// host that is cut off are lost.
func (f *Fabric) SetCut(net, host int, cut bool) { f.ports[net][host].cut = cut }

// IsCut reports whether a host is cut off one network.
func (f *Fabric) IsCut(net, host int) bool { return f.ports[net][host].cut }

// Stats returns the counters of one port.
func (f *Fabric) Stats(net, host int) Stats { return f.ports[net][host].stats }

// chance draws whether something of probability p happens. It draws always, so
// that changing one probability does not shift the others' luck.
func chance(r *rand.PCG, p float64) bool {
	return float64(r.Uint64()>>11)/(1<<53) < p
}

// lose draws whether a packet is lost, in bursts of the mean length asked for.
func (fl *flow) lose(p *Params) bool {
	if g := &p.Gilbert; *g != (Gilbert{}) {
		if fl.inLoss {
			fl.inLoss = !chance(fl.rng, g.Leave)
		} else {
			fl.inLoss = chance(fl.rng, g.Enter)
		}
		if fl.inLoss {
			return chance(fl.rng, g.LossBad)
		}
		return chance(fl.rng, g.LossGood)
	}
	burst := max(p.Burst, 1)
	if burst == 1 {
		return chance(fl.rng, p.Loss)
	}
	if fl.inLoss {
		fl.inLoss = chance(fl.rng, 1-1/burst)
		return fl.inLoss
	}
	// A share Loss of all packets falls into bursts of that mean length.
	fl.inLoss = chance(fl.rng, p.Loss/(burst*max(1-p.Loss, 1e-9)))
	return fl.inLoss
}

// Inject hands over a packet that a host sends to another. The packet is copied.
func (f *Fabric) Inject(now Time, net, from, to int, pkt []byte) {
	pt := &f.ports[net][from]
	pt.stats.Sent++
	pt.stats.SentBytes += uint64(len(pkt))
	if to < 0 || to >= len(pt.flows) || len(pkt) > MaxPacket {
		pt.stats.NoRoute++
		return
	}
	p, fl := &pt.params, &pt.flows[to]
	if fl.params != nil {
		p = fl.params
	}
	lost := fl.lose(p)
	twice := chance(fl.rng, p.Duplicate)
	late := chance(fl.rng, p.Reorder)
	broken := chance(fl.rng, p.Corrupt)
	where := fl.rng.Uint64()
	jitter := Time(0)
	if p.Jitter > 0 {
		jitter = Time(fl.rng.Uint64() % uint64(p.Jitter))
	}
	switch {
	case pt.cut:
		pt.stats.Cut++
		return
	case p.MTU > 0 && len(pkt) > p.MTU:
		pt.stats.TooLong++
		return
	}
	left, backlog, ok := pt.up.take(now, len(pkt))
	pt.stats.PeakBacklogBytes = max(pt.stats.PeakBacklogBytes, backlog)
	switch {
	case !ok:
		pt.stats.Overflowed++
		return
	case lost:
		pt.stats.Lost++
		return
	}
	at := max(left+Time(p.Delay)+jitter, fl.last)
	if late {
		pt.stats.Reordered++
		at += 4*(left-now) + Time(p.Delay)/2 + Time(10*time.Microsecond)
	} else {
		fl.last = at
	}
	e := f.event(at, net, from, to, pkt)
	if broken {
		pt.stats.Corrupted++
		corrupt(e.pkt, where)
	}
	f.push(e)
	if twice {
		pt.stats.Duplicated++
		f.push(f.event(at, net, from, to, e.pkt))
	}
}

// corrupt flips one bit behind the IP header, which routers check by themselves.
func corrupt(pkt []byte, where uint64) {
	head := 40
	if len(pkt) > 0 && pkt[0]>>4 == 4 {
		head = int(pkt[0]&0xf) * 4
	}
	if head < len(pkt) {
		i := head + int(where>>3%uint64(len(pkt)-head))
		pkt[i] ^= 1 << (where & 7)
	}
}

// Next returns when Advance will have something to do, and false if nothing is
// under way.
func (f *Fabric) Next() (Time, bool) {
	if len(f.events) == 0 {
		return 0, false
	}
	return f.events[0].at, true
}

// Advance moves the time to now and passes every packet that has arrived by then
// to deliver, in order of arrival, with the time at which it arrived. deliver must not
// keep pkt; it may inject packets at that time, as a router between networks does.
func (f *Fabric) Advance(now Time, deliver func(at Time, net, from, to int, pkt []byte)) {
	for len(f.events) > 0 && f.events[0].at <= now {
		e := heap.Pop(&f.events).(*event)
		src, dst := &f.ports[e.net][e.from], &f.ports[e.net][e.to]
		switch {
		case dst.cut:
			src.stats.Cut++
		case !e.arrived && dst.down.rate > 0:
			left, _, ok := dst.down.take(e.at, len(e.pkt))
			if ok {
				e.at, e.arrived = left, true
				f.push(e)
				continue
			}
			src.stats.Overflowed++
		default:
			src.stats.Delivered++
			deliver(e.at, e.net, e.from, e.to, e.pkt)
		}
		f.free = append(f.free, e)
	}
}

func (f *Fabric) push(e *event) {
	e.order = f.order
	f.order++
	heap.Push(&f.events, e)
}

// event returns an event with a copy of pkt, in memory of the fabric's own.
func (f *Fabric) event(at Time, net, from, to int, pkt []byte) *event {
	var e *event
	if n := len(f.free); n > 0 {
		e, f.free = f.free[n-1], f.free[:n-1]
	} else {
		e = new(event)
	}
	*e = event{at: at, net: net, from: from, to: to, pkt: append(e.pkt[:0], pkt...)}
	return e
}

// eventHeap orders events by time. It has pointers, for which an interface needs no
// memory of its own.
type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(*event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
