package mpi

import (
	"testing"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
)

// chaosBulks is an RDMA device of each rank of a chaos, for bodies: it works in any
// order, in pieces, and sometimes not at all.
type chaosBulks struct {
	k       *chaos
	exposed map[uint32]*chaosExposure
	offered map[uint32]*chaosOffer
	last    uint32
	unsure  map[bodyKey]*job.BodyWrite
	reading int
	written int
	read    int
}

// bodyKey identifies a body by its peer and the id of the receive.
type bodyKey struct {
	p  *p2p.Peer
	id uint64
}

type chaosBulk struct {
	*chaosBulks
	e *p2p.Engine
}

type chaosExposure struct {
	b    *chaosBulks
	stag uint32
	buf  []byte
}

func (x *chaosExposure) Withdraw() { delete(x.b.exposed, x.stag) }

// addBulk gives all ranks RDMA.
func (k *chaos) addBulk() *chaosBulks {
	b := &chaosBulks{k: k, exposed: make(map[uint32]*chaosExposure), offered: make(map[uint32]*chaosOffer),
		unsure: make(map[bodyKey]*job.BodyWrite)}
	for _, w := range k.worlds {
		w.eng.Bulk = &chaosBulk{b, w.eng}
	}
	return b
}

func (b *chaosBulk) Poll() bool { return false }

func (b *chaosBulk) Prepare() {}

func (b *chaosBulk) Ready(later func()) bool {
	if b.k.rng.IntN(8) > 0 {
		return true
	}
	b.k.todo = append(b.k.todo, later)
	return false
}

func (b *chaosBulk) Expose(r *p2p.Request) (g envelope.Key, ok bool) {
	if b.k.rng.IntN(8) == 0 {
		return g, false
	}
	b.last++
	x := &chaosExposure{b: b.chaosBulks, stag: b.last, buf: r.Buf[:r.Status.Bytes]}
	b.exposed[x.stag] = x
	r.Exposed = x
	return envelope.Key{STag: x.stag, Port: uint16(b.e.Rank)}, true
}

func (b *chaosBulk) Write(r *p2p.Request, v *envelope.Header) {
	m := &job.BodyWrite{Write: rdmadev.Write{ID: v.PeerID, Buf: r.Buf[:v.Length]}, Request: r}
	n := int(v.Length)
	stag, to := v.Key.STag, b.k.worlds[v.Key.Port].eng
	k := bodyKey{r.Peer, m.ID}
	b.unsure[k] = m
	done := 0
	var step, lose func()
	lose = func() {
		if b.unsure[k] == m {
			delete(b.unsure, k)
			m.WriteLost()
		}
	}
	step = func() {
		x := b.exposed[stag]
		if x == nil || b.k.rng.IntN(12) == 0 {
			lose()
			return
		}
		done += copy(x.buf[done:done+b.k.rng.IntN(n-done+1)], r.Buf[done:])
		if done < n {
			b.k.todo = append(b.k.todo, step)
			return
		}
		b.chaosBulks.written++
		to.Written(to.Peers[b.e.Rank], m.ID)
		if b.k.rng.IntN(4) == 0 { // the connection is lost before it is confirmed, perhaps
			b.k.todo = append(b.k.todo, lose)
		}
	}
	b.k.todo = append(b.k.todo, step)
}

func (b *chaosBulk) HandleWriteFIN(p *p2p.Peer, id uint64) {
	if m := b.unsure[bodyKey{p, id}]; m != nil {
		delete(b.unsure, bodyKey{p, id})
		m.Request.Event(nil)
	}
}

// chaosOffer is memory that is read. Its buffer is the sender's again some time after
// it was withdrawn: what is read of it then is wrong.
type chaosOffer struct {
	b    *chaosBulks
	stag uint32
	buf  []byte
}

func (x *chaosOffer) Over() bool { return false }

func (x *chaosOffer) Withdraw(then func(bool)) {
	delete(x.b.offered, x.stag)
	if x.b.k.rng.IntN(2) == 0 {
		then(false)
		return
	}
	x.b.k.todo = append(x.b.k.todo, func() { then(false) })
}

func (b *chaosBulk) Offer(r *p2p.Request) (g envelope.Key, ok bool) {
	if b.k.rng.IntN(8) == 0 {
		return g, false
	}
	b.last++
	x := &chaosOffer{b: b.chaosBulks, stag: b.last, buf: r.Buf}
	b.offered[x.stag], r.Offered = x, x
	return envelope.Key{STag: x.stag, Port: uint16(b.e.Rank)}, true
}

// chaosRead is a receive that reads.
type chaosRead struct{ gone bool }

func (x *chaosRead) Withdraw() { x.gone = true }

func (b *chaosBulk) Read(f p2p.Fetch) {
	x, done := new(chaosRead), 0
	buf := f.Receive.Buf
	f.Receive.Exposed = x
	b.reading++
	end := func(fetched bool) {
		b.reading--
		if fetched {
			b.e.ReadDone(&f, x.gone)
		} else {
			b.e.ReadFailed(&f)
		}
	}
	var step func()
	step = func() {
		src := b.offered[f.From.STag]
		switch {
		case x.gone:
			end(true)
		case src == nil || b.k.rng.IntN(12) == 0:
			end(false)
		default:
			done += copy(buf[done:done+b.k.rng.IntN(f.Len-done+1)], src.buf[done:])
			if done < f.Len {
				b.k.todo = append(b.k.todo, step)
				return
			}
			b.chaosBulks.read++
			end(true)
		}
	}
	b.k.todo = append(b.k.todo, step)
}

// checkEmpty checks that no memory is left open.
func (b *chaosBulks) checkEmpty(t *testing.T) bool {
	t.Helper()
	if n := len(b.unsure); n > 0 {
		t.Errorf("%d bodies are not known to have been placed", n)
		return false
	}
	if n := len(b.exposed); n > 0 {
		t.Errorf("%d buffers can still be written to", n)
		return false
	}
	if n := len(b.offered); n > 0 {
		t.Errorf("%d buffers can still be read", n)
		return false
	}
	if b.reading > 0 {
		t.Errorf("%d bodies are being read", b.reading)
		return false
	}
	return true
}
