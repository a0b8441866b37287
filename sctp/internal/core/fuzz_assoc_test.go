package core

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/wire"
)

// randomScripts is how many scripts TestRandomScripts runs.
var randomScripts = 300

// FuzzAssoc runs a script of network faults and user calls on a pair, checks
// the accounts after each step, and at the end that everything was delivered if
// nobody aborted.
func FuzzAssoc(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		script := make([]byte, 20+n*10)
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(runScript)
}

// runScript reads a script: the first byte picks the configuration, each of the
// others does something to the pair.
func runScript(t *testing.T, script []byte) {
	if len(script) == 0 || len(script) > 2000 {
		return
	}
	p := newPair(quiet{t}, uint64(len(script)), lossyConfig(int(script[0])))
	p.z.listen()
	p.a.listen()
	p.a.dial(p.z)
	bytesLeft := 300_000
	aborted, shut := false, false
	for k := 1; k < len(script); k++ {
		op, arg := script[k]>>4, int(script[k]&15)
		h := p.a
		if arg&1 != 0 {
			h = p.z
		}
		p.a.flush()
		p.z.flush()
		var f *flying
		if len(p.wire) > 0 {
			f = &p.wire[arg%len(p.wire)]
		}
		switch op {
		case 0, 1, 2: // deliver
			if f != nil {
				g := *f
				p.wire = append(p.wire[:arg%len(p.wire)], p.wire[arg%len(p.wire)+1:]...)
				g.to.deliver(&g.p)
			}
		case 3: // drop
			if f != nil {
				p.wire = append(p.wire[:arg%len(p.wire)], p.wire[arg%len(p.wire)+1:]...)
			}
		case 4: // duplicate
			if f != nil && len(p.wire) < 500 {
				p.wire = append(p.wire, *f)
			}
		case 5: // reorder
			if f != nil {
				f.at += Time(arg) * Time(time.Millisecond)
			}
		case 6: // corrupt, with a good checksum if arg says so
			if f != nil {
				g := *f
				g.p.Data = append([]byte(nil), g.p.Data...)
				g.p.Data[p.rng.IntN(len(g.p.Data))] ^= byte(1 << p.rng.IntN(8))
				if f.to.deliver(&g.p) == DropNone {
					t.Fatalf("a corrupt packet was accepted: %s", wire.Describe(g.p.Data))
				}
			}
		case 7, 8: // advance
			p.advance(time.Duration(1+arg*arg) * time.Millisecond)
		case 9, 10, 11, 12: // send
			if h.assoc == nil || !h.assoc.state.canQueue() || h.assoc.shut.wanted || bytesLeft < 0 {
				break
			}
			out, _ := h.assoc.Streams()
			n := 1 + p.rng.IntN(1<<arg)
			bytesLeft -= n
			h.sendMsg(&Message{SID: uint16(p.rng.IntN(out)), Unordered: op == 9, Immediate: arg == 3}, n)
		case 13: // heartbeat
			if h.assoc != nil && h.assoc.state != Closed {
				h.assoc.RequestHeartbeat(p.now, h.assoc.paths[0].Remote)
			}
		case 14: // shutdown
			if h.assoc != nil && arg == 5 {
				h.assoc.Shutdown(p.now)
				shut = true
			}
		case 15: // abort
			if h.assoc != nil && arg == 7 {
				h.assoc.Abort(p.now, []byte("fuzz"))
				aborted = true
			}
		}
		for _, x := range []*host{p.a, p.z} {
			if x.assoc != nil {
				p.checkAssoc(x.assoc)
			}
		}
	}
	if aborted {
		p.advance(5 * time.Minute)
		p.checkReleased(t)
		return
	}
	quiet := func() bool {
		if p.z.assoc == nil {
			return p.a.assoc.State() == Closed
		}
		if shut {
			return p.a.assoc.State() == Closed && p.z.assoc.State() == Closed
		}
		return p.idle() || p.a.assoc.State() == Closed
	}
	if !p.driveUntil(2*time.Hour, quiet) {
		t.Fatalf("not quiet after 2 hours: A %v %+v", p.a.assoc.State(), p.a.assoc.Stats())
	}
	p.a.flush()
	p.z.flush()
	if p.a.assoc.Err() == nil && p.z.assoc.Err() == nil {
		p.wantDelivered()
	}
	p.advance(5 * time.Minute)
	p.checkReleased(t)
}

// checkReleased checks that no owner is released twice, and each one once when
// its association is gone.
func (p *pair) checkReleased(t *testing.T) {
	t.Helper()
	p.a.flush()
	p.z.flush()
	for _, h := range []*host{p.a, p.z} {
		for b := range h.released {
			if b.n > 1 || b.n == 0 && h.assoc.State() == Closed {
				t.Fatalf("%s is %v and an owner was released %d times", h.name, h.assoc.State(), b.n)
			}
		}
	}
}

// FuzzInbound feeds whole packets, with the checksum and tag put right, to an
// association in any state and to a listener: nothing may panic, and no packet
// may make them send more than a bounded reply.
func FuzzInbound(f *testing.F) {
	p := newPair(f, 1)
	p.net.drop = func(_ *host, pkt []byte) bool { f.Add(byte(3), pkt[wire.HeaderLen:]); return false }
	p.connect()
	p.a.send(0, 5000)
	p.z.send(0, 100)
	p.drive()
	p.a.assoc.Shutdown(p.now)
	p.advance(time.Minute)
	for _, c := range [][]byte{wire.AppendForwardTSN(nil, 5, []wire.Skip{{SID: 1, SSN: 2}}),
		wire.AppendIForwardTSN(nil, 5, []wire.ISkip{{SID: 1, MID: 2}}), wire.AppendECNE(nil, wire.ECNE{TSN: 1}),
		wire.AppendOpError(nil, wire.OpError{Causes: wire.AppendInvalidStream(nil, 3)}), wire.AppendAbort(nil, wire.Abort{}),
		wire.AppendSack(nil, 3, 4, []wire.GapBlock{{Start: 2, End: 3}}, []uint32{9})} {
		f.Add(byte(3), c)
	}
	f.Fuzz(func(t *testing.T, state byte, chunks []byte) {
		if len(chunks) > 4000 {
			return
		}
		p := newPair(quiet{t}, 1, &Config{NoInterleaving: state&8 != 0})
		switch state % 8 {
		case 0:
			p.a.dial(p.z)
		case 1:
			p.z.listen()
			p.a.dial(p.z)
			p.driveUntil(time.Minute, func() bool { return p.a.assoc.State() == CookieEchoed })
		case 2, 3:
			p.connect()
			p.a.send(0, 3000)
			p.a.flush()
		case 4:
			p.inState(ShutdownPending)
		case 5:
			p.inState(ShutdownSent)
		case 6:
			p.inState(ShutdownReceived)
		case 7:
			p.inState(ShutdownAckSent)
		}
		p.a.outbox()
		tag := p.a.assoc.Tag()
		if len(chunks) > 0 && wire.ChunkType(chunks[0]) == wire.ChunkInit {
			tag = 0
		}
		pkt := p.a.packet(tag, chunks)
		p.a.assoc.HandlePacket(p.now, pkt)
		p.a.assoc.EndBatch(p.now)
		p.a.read()
		n := 0
		for _, b := range p.a.outbox() {
			n += len(b)
		}
		if n > 40_000 {
			t.Errorf("%d bytes sent in reply to %d", n, len(pkt.Data))
		}
		p.wire = nil
		p.advance(time.Minute)

		p.z.listen()
		if r := p.z.listener.HandlePacket(p.now, p.z.packet(tag, chunks), nil); len(r.Reply) > 5000 {
			t.Errorf("the listener replied with %d bytes", len(r.Reply))
		}
	})
}

// Random scripts, without waiting for a fuzzer.
func TestRandomScripts(t *testing.T) {
	n := randomScripts
	if testing.Short() {
		n /= 5
	}
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 3))
		script := make([]byte, 1+rng.IntN(400))
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		if !t.Run(seedName(int(seed)), func(t *testing.T) { runScript(t, script) }) {
			return
		}
	}
}
