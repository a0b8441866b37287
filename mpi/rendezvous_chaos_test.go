package mpi

import "testing"

// chaosBulks is an RDMA device of each rank of a chaos, for bodies: it works in any
// order, in pieces, and sometimes not at all.
type chaosBulks struct {
	k       *chaos
	exposed map[uint32]*chaosExposure
	last    uint32
	unsure  map[moveKey]*bulkMove
	written int
}

type chaosBulk struct {
	*chaosBulks
	e *engine
}

type chaosExposure struct {
	b    *chaosBulks
	stag uint32
	buf  []byte
}

func (x *chaosExposure) withdraw() { delete(x.b.exposed, x.stag) }

// addBulk gives all ranks RDMA.
func (k *chaos) addBulk() *chaosBulks {
	b := &chaosBulks{k: k, exposed: make(map[uint32]*chaosExposure), unsure: make(map[moveKey]*bulkMove)}
	for _, w := range k.worlds {
		w.eng.bulk = &chaosBulk{b, w.eng}
	}
	return b
}

func (b *chaosBulk) poll() bool { return false }

func (b *chaosBulk) ready(later func()) bool {
	if b.k.rng.IntN(8) > 0 {
		return true
	}
	b.k.todo = append(b.k.todo, later)
	return false
}

func (b *chaosBulk) expose(r *Request) (g grant, ok bool) {
	if b.k.rng.IntN(8) == 0 {
		return g, false
	}
	b.last++
	x := &chaosExposure{b: b.chaosBulks, stag: b.last, buf: r.buf[:r.status.Bytes]}
	b.exposed[x.stag] = x
	r.exposed = x
	return grant{stag: x.stag, port: uint16(b.e.rank)}, true
}

func (b *chaosBulk) write(r *Request, v *envelope) {
	m := &bulkMove{r: r, id: v.peerID, n: int(v.length)}
	stag, to := v.grant.stag, b.k.worlds[v.grant.port].eng
	k := moveKey{r.peer, m.id}
	b.unsure[k] = m
	done := 0
	var step, lose func()
	lose = func() {
		if b.unsure[k] == m {
			delete(b.unsure, k)
			m.asMessage(b.e)
		}
	}
	step = func() {
		x := b.exposed[stag]
		if x == nil || b.k.rng.IntN(12) == 0 {
			lose()
			return
		}
		done += copy(x.buf[done:done+b.k.rng.IntN(m.n-done+1)], r.buf[done:])
		if done < m.n {
			b.k.todo = append(b.k.todo, step)
			return
		}
		b.chaosBulks.written++
		to.written(to.peers[b.e.rank], m.id)
		if b.k.rng.IntN(4) == 0 { // the connection is lost before it is confirmed, perhaps
			b.k.todo = append(b.k.todo, lose)
		}
	}
	b.k.todo = append(b.k.todo, step)
}

func (b *chaosBulk) confirmed(p *peer, id uint64) {
	if m := b.unsure[moveKey{p, id}]; m != nil {
		delete(b.unsure, moveKey{p, id})
		m.r.event(nil)
	}
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
	return true
}
