package core

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// tortureOptions is how many bytes of a script choose options.
const tortureOptions = 40

var tortureNets = [4]byte{0, 1, 2, 3}

// open reads the options and makes the ends.
func (w *world) open() {
	h := uint64(14695981039346656037)
	for _, b := range w.script[:min(len(w.script), tortureOptions)] {
		h = (h ^ uint64(b)) * 1099511628211
	}
	w.rng = rand.New(rand.NewPCG(h, 9))
	w.now = clock.Time(time.Second)
	w.sent = map[uint32]*tmsg{}
	w.cut = map[netip.Addr]bool{}
	mode := w.byte()
	w.delay = clock.Time(time.Duration(1+mode&7*mode&7) * time.Millisecond)
	if mode&8 != 0 {
		w.loss = 10 * (mode >> 6)
	}
	if mode&16 != 0 {
		w.slabs = &w.mem.slabs
	}
	patient := mode&32 != 0
	w.mayFail = !patient
	shared := w.byte()
	asconf, auth, insecure := shared&3 == 3, shared>>2&3 == 3, w.byte()&3 == 0
	zero := shared>>4&3 == 3
	w.clean = !zero
	w.split = shared>>6 == 3 && !asconf
	for i, name := range []string{"A", "Z"} {
		e := &tend{w: w, name: name, buf: w.mem.buf[i], read: w.mem.read[i], jar: cookie.NewJar(w.seed()), requests: map[uint32]bool{}, parts: map[uint64]*tpart{}, reading: true,
			open: map[uint16]*topen{}, next: map[uint16]uint32{}, order: map[uint16]uint32{}, ordered: map[uint16][]*tmsg{}}
		for k := range 1 + w.byte()%3*(w.byte()&1) {
			e.local = append(e.local, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, tortureNets[k], 0, byte(1 + i)}), 9899))
		}
		e.cfg = w.config(patient, asconf, auth, zero, asconf && insecure)
		w.end[i] = e
	}
	if w.end[0].cfg.Discover || w.end[1].cfg.Discover {
		w.mtu = 600 + 100*(w.byte()%32)
	}
	if w.split {
		// Only heartbeats find out which address reaches which.
		for _, e := range w.end {
			e.cfg.HBInterval = max(e.cfg.HBInterval, 0)
		}
		// Both ends need an address in each network.
		n := min(len(w.end[0].local), len(w.end[1].local))
		w.end[0].local, w.end[1].local = w.end[0].local[:n], w.end[1].local[:n]
	}
	w.end[1].listen()
	w.end[0].listen()
	how := w.byte()
	w.end[0].dial(1 + how&1)
	if how&14 == 14 { // both at once
		w.end[1].dial(1)
	}
}

// config reads the options of one end.
func (w *world) config(patient, asconf, authed, zero, insecure bool) *Config {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	c := &Config{RTOInitial: ms(100 + 10*(w.byte()&31)), RTOMin: ms(50), RTOMax: time.Second, HBInterval: time.Second}
	if patient {
		c.AssocMaxRetrans, c.MaxInitRetrans, c.CookieLife, c.ShutdownGuard = 1<<20, 1<<20, time.Hour, -1
	} else if x := w.byte(); x&1 != 0 {
		c.AssocMaxRetrans, c.MaxInitRetrans, c.PathMaxRetrans = 2+x>>1&7, 2+x>>1&7, 1+x>>4&3
	}
	switch x := w.byte(); x & 7 {
	case 0:
		c.HBInterval = -1
	case 1:
		c.HBInterval = ms(10)
	}
	x := w.byte()
	c.NoRACK, c.NoInterleaving, c.NoPacing, c.Bundle = x&1 != 0, x&2 != 0, x&4 != 0, x&24 == 24
	if x&32 != 0 {
		c.Congestion = cc.NewReno
		if x&24 == 16 {
			c.Congestion = cc.BBR
		}
	}
	c.Multipath, c.NoPartialReliability = x&64 != 0, x&128 != 0 && x&1 != 0
	x = w.byte()
	c.Scheduler = tx.Scheduler(x % 6)
	c.NoECN, c.Discover, c.Pieces = x&16 != 0, x&96 == 96, x&128 != 0
	switch x = w.byte(); x & 3 {
	case 0:
		c.RecvBuffer = MinRecvBuffer + 50*(x>>2)
	case 1:
		c.RecvBuffer = 5000 + 500*(x>>2)
	}
	switch x = w.byte(); x & 3 {
	case 0:
		c.MTU = pmtu.MinMTU + 4*(x>>2)
	case 1:
		c.MTU = 600 + 400*(x>>2)
	case 2:
		c.SendBuffer = 2000 + 1000*(x>>2)
	}
	switch x = w.byte(); x & 7 {
	case 0:
		c.SackDelay = -1
	case 1:
		c.SackDelay, c.SackEvery = ms(500), 1+x>>3
	case 2:
		c.MaxBurst = 1 + x>>3&3
	case 3:
		c.SwitchPrimary = true
	case 4:
		c.PFMaxRetrans = -1
	case 5:
		c.NoReconfig = x>>3&3 == 3
		c.DenyReconfig = reconfig.Kinds(x >> 5)
	}
	c.ZeroChecksum, c.ChangeAddrs = zero, asconf
	c.InsecureAddrs = insecure
	if authed {
		c.Auth = &auth.Config{Keys: []auth.Key{{ID: 1, Secret: []byte("one")}, {ID: 2, Secret: []byte("two")}}, Active: 1}
		types := []wire.ChunkType{wire.ChunkData, wire.ChunkIData, wire.ChunkSack, wire.ChunkHeartbeat, wire.ChunkAbort,
			wire.ChunkShutdown, wire.ChunkReConfig, wire.ChunkCookieEcho, wire.ChunkCookieAck, wire.ChunkForwardTSN, wire.ChunkError,
			wire.ChunkIForwardTSN, wire.ChunkHeartbeatAck, wire.ChunkShutdownAck}
		for pick := w.byte() | w.byte()<<8; pick != 0; pick &= pick - 1 {
			k := 0
			for pick>>k&1 == 0 {
				k++
			}
			if k < len(types) {
				c.Auth.Chunks = append(c.Auth.Chunks, types[k])
			}
		}
	}
	c.OutStreams, c.InStreams = uint16(1+w.byte()%9), uint16(4+w.byte()%12)
	return c
}

// run runs the whole script and then heals the network: everything has to be
// delivered then, or the association to have failed.
func (w *world) run() {
	w.open()
	w.quiesce()
	for n := 0; w.more() && n < 2000; n++ {
		w.step(w.byte(), w.byte())
		w.checkReasons()
		w.quiesce()
	}
	w.heal()
}

// quiesce lets both ends read and send, and checks everything.
func (w *world) quiesce() {
	for _, e := range w.end {
		if e.assoc == nil {
			continue
		}
		if w.rng.IntN(3) > 0 {
			e.consume(1 + w.rng.IntN(8))
		}
		e.flush()
		w.check(e)
	}
}

// step does one thing.
func (w *world) step(op, arg int) {
	e := w.end[arg&1]
	arg >>= 1
	var a *Assoc
	if e.assoc != nil && e.assoc.State() != Closed {
		a = e.assoc
	}
	pick := -1
	if len(w.wire) > 0 {
		pick = arg % len(w.wire)
	}
	switch op %= 64; {
	case op < 12: // deliver a batch
		for n := 1 + op%4; n > 0 && len(w.wire) > 0; n-- {
			f := w.take(min(pick, len(w.wire)-1))
			w.deliver(f, n == 1 || len(w.wire) == 0 || w.wire[min(pick, len(w.wire)-1)].to != f.to)
		}
	case op < 14: // drop
		if pick >= 0 {
			w.take(pick)
		}
	case op < 16: // duplicate
		if pick >= 0 {
			w.wire = append(w.wire, w.wire[pick])
		}
	case op < 18: // reorder
		if pick >= 0 {
			w.wire[pick].at += clock.Time(arg) * clock.Time(time.Millisecond)
		}
	case op < 19: // corrupt
		if pick >= 0 {
			w.corrupt(w.take(pick), arg)
		}
	case op < 24: // time passes
		w.advance(clock.Time(1+arg*arg/8) * clock.Time(time.Millisecond))
	case op < 25: // timers run, and nothing arrives
		w.now += clock.Time(arg) * clock.Time(20*time.Millisecond)
		for _, x := range w.end {
			if x.assoc != nil {
				x.assoc.HandleTimeout(w.now)
			}
		}
	case op < 39:
		if a != nil {
			w.sendSome(e, op, arg)
		}
	case op < 40:
		e.reading = !e.reading
	case op < 41:
		e.releasePieces()
	case op < 42:
		if arg&7 == 7 {
			w.loss = 0
		} else {
			w.loss = 40 * (arg & 7)
		}
	case op < 45: // an address dies, or lives again
		addr := e.local[arg%len(e.local)].Addr()
		w.cut[addr] = !w.cut[addr]
	case op < 46:
		if w.mtu > 0 {
			w.mtu = 560 + 60*arg
		}
	case a != nil:
		w.call(e, a, op, arg)
	}
}

// corrupt delivers a packet with a bit wrong: the checksum has to tell.
func (w *world) corrupt(f tflight, arg int) {
	if !w.clean {
		return
	}
	f.p.Data = slices.Clone(f.p.Data)
	f.p.Data[w.rng.IntN(len(f.p.Data))] ^= 1 << (arg & 7)
	if w.deliver(f, true) == DropNone {
		w.fail("a corrupt packet was accepted: %s", wire.Describe(f.p.Data))
	}
}

// sendSome sends a few messages.
func (w *world) sendSome(e *tend, op, arg int) {
	out, _ := e.assoc.Streams()
	if out == 0 || len(w.sent) > 400 {
		return
	}
	if op == 31 {
		w.sendPieces(e, out, arg)
		return
	}
	if op == 33 {
		w.sendSegmented(e, out, arg)
		return
	}
	for range 1 + op&3 {
		n := w.rng.IntN(1 << (arg & 15 % 14))
		m := &tx.Message{SID: uint16(w.rng.IntN(out)), Unordered: op&4 != 0, Immediate: op&12 == 12, PPID: uint32(arg)}
		switch op {
		case 32:
			if arg&16 != 0 && e.assoc.auth.On && e.assoc.auth.Must.Has(e.assoc.tx.dataType()) {
				m.Keyed, m.Key = true, uint16(1+arg>>3&1)
			}
			if i := e.assoc.livePath(arg % e.assoc.NumPaths()); arg&32 == 0 {
				m.Remote = e.assoc.paths[i].Remote
			}
		case 34, 35:
			m.LimitRtx, m.MaxRtx = true, uint32(arg>>4)
		case 36, 37:
			m.Lifetime = clock.Time(1+arg) * clock.Time(2*time.Millisecond)
		case 38:
			m.Droppable, m.Priority = true, uint32(arg)
		}
		switch err := e.send(m, n); err {
		case nil, tx.ErrWouldBlock, ErrShutdown:
		case tx.ErrMessageOpen:
			if e.open[m.SID] == nil {
				w.fail("%s: stream %d: %v", e.name, m.SID, err)
			}
		default:
			w.fail("%s: Send: %v", e.name, err)
		}
	}
}

// call calls something of the API.
func (w *world) call(e *tend, a *Assoc, op, arg int) {
	req := func(id uint32, err error) {
		if err == nil {
			if e.requests[id] || id == 0 {
				w.fail("%s: request %d again", e.name, id)
			}
			e.requests[id] = true
		}
	}
	remote := a.PathStats(arg % a.NumPaths()).Remote
	out, in := a.Streams()
	sids := func(n int) (list []uint16) {
		for range arg & 3 {
			list = append(list, uint16(w.rng.IntN(max(n, 1))))
		}
		return list
	}
	fresh := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, tortureNets[arg&3], byte(1 + arg>>2&3), byte(1 + arg>>4&1)}), 9899)
	if e == w.end[1] {
		fresh = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, tortureNets[arg&3], byte(10 + arg>>2&3), 7}), 9899)
	}
	mine := e.local[0]
	if len(a.local.InUse) > 0 {
		mine = a.local.InUse[arg%len(a.local.InUse)]
	}
	w.logf("%s: call %d %d", e.name, op, arg)
	switch op {
	case 46:
		req(a.ResetStreams(w.now, sids(out)))
	case 47:
		req(a.ResetIncoming(w.now, sids(in)))
	case 48:
		if arg&3 == 0 {
			req(a.ResetAssoc(w.now))
		}
	case 49:
		req(a.AddStreams(w.now, uint16(arg&3), uint16(arg>>2&3)))
	case 50:
		req(a.AddLocalAddr(fresh))
	case 51:
		req(a.RemoveLocalAddr(mine))
	case 52:
		req(a.ReplaceLocalAddr(mine, fresh))
	case 53:
		req(a.SetPeerPrimary(mine))
	case 54:
		_ = a.SetPrimary(remote)
	case 55:
		_ = a.RequestHeartbeat(w.now, remote)
	case 56:
		if arg&1 == 0 {
			_ = a.SetPathMTU(remote, 500+16*arg)
		} else {
			_ = a.SetPathLimit(w.now, remote, 500+100*arg)
		}
	case 57:
		_ = a.SetStreamValue(uint16(w.rng.IntN(max(out, 1))), uint16(arg))
	case 58:
		if a.Authenticated() {
			_ = a.UseAuthKey(uint16(1 + arg&1))
		}
	case 59:
		if x, err := a.PathParams(remote); err == nil {
			if x.HBInterval = time.Duration(arg-8) * 10 * time.Millisecond; w.split {
				x.HBInterval = max(x.HBInterval, time.Millisecond)
			}
			x.PFMaxRetrans = arg&7 - 1
			_ = a.SetPathParams(w.now, remote, x)
		}
	case 60:
		if arg < 8 {
			a.Shutdown(w.now)
		}
	case 61:
		if arg == 5 && !e.peer().needs(wire.ChunkAbort) {
			w.mayFail = true
			a.Abort(w.now, []byte("enough"))
		}
	case 62:
		// RFC 4895, Section 6.3: "the restart procedure does not work" if the
		// other end wants the COOKIE ECHO authenticated.
		// Nor can it know of a cookie that it gave out before. And an end that wants
		// ABORTs authenticated does not believe that its restart was refused, as it is
		// if one of its addresses is being removed.
		z := e.peer()
		if arg == 6 && !(e.cfg.ChangeAddrs && e.needs(wire.ChunkAbort)) && !z.needs(wire.ChunkCookieEcho) && !z.needs(wire.ChunkAbort) && z.assoc != nil && z.assoc.PeerTag() == a.Tag() { // the process of e dies and is started again
			w.mayFail = true
			e.releasePieces()
			a.Release()
			e.flush()
			clear(e.requests)
			e.dial(1)
			e.void()
		}
	case 63:
		if arg < 3 && len(w.wire) > 0 {
			w.forge(arg)
		} else if arg >= 96 {
			e.follows = true
			a.FollowLocalAddrs(append([]netip.AddrPort{fresh}, e.local[:arg%(len(e.local)+1)]...))
		}
	}
}

// needs reports whether e accepts a type of chunk only authenticated.
func (e *tend) needs(t wire.ChunkType) bool {
	return e.cfg.Auth != nil && slices.Contains(e.cfg.Auth.Chunks, t)
}

// forge delivers a packet with something wrong under a right checksum, as from
// an attacker who knows the verification tag or from a broken peer. What is sent
// may be lost then; the accounts hold.
func (w *world) forge(arg int) {
	w.hostile, w.mayFail = true, true
	f := w.wire[w.rng.IntN(len(w.wire))]
	f.p.Data = slices.Clone(f.p.Data)
	for range 1 + arg {
		i := wire.HeaderLen + w.rng.IntN(len(f.p.Data)-wire.HeaderLen)
		f.p.Data[i] ^= 1 << w.rng.IntN(8)
	}
	wire.SetChecksum(f.p.Data)
	w.deliver(f, true)
}

// due returns when something happens next, and the packet that arrives then, or
// -1; the time is 0 if nothing will.
func (w *world) due() (at clock.Time, which int) {
	which = -1
	for i := range w.wire {
		if f := &w.wire[i]; at == 0 || f.at < at || f.at == at && which >= 0 && f.seq < w.wire[which].seq {
			at, which = f.at, i
		}
	}
	for _, e := range w.end {
		if e.assoc == nil {
			continue
		}
		if t := e.assoc.NextTimeout(); t != 0 && (at == 0 || t < at) {
			at, which = t, -1
		}
	}
	return at, which
}

// next lets the next thing happen, unless that is after until.
func (w *world) next(until clock.Time) bool {
	at, which := w.due()
	if at == 0 || at > until {
		return false
	}
	w.now = max(w.now, at)
	if which >= 0 {
		w.deliver(w.take(which), true)
	} else {
		for _, e := range w.end {
			if e.assoc != nil {
				e.assoc.HandleTimeout(w.now)
			}
		}
	}
	w.quiesce()
	return true
}

func (w *world) advance(d clock.Time) {
	until := w.now + d
	for n := 0; w.next(until); n++ {
		if n > 100_000 {
			w.fail("the ends go round in circles")
		}
	}
	w.now = until
}
