package verbs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weftstack/weft/ddp/ddpsctp"
)

// The region of each end of a connection, for its peer: a counter, a part that is read
// and never changes, and slots that are written once each. Behind it is memory of the
// end's own: what its writes are sent from, and where reads and atomics go.
const (
	maxMessage = 3000
	readAt     = 1 << 10
	readSize   = 4 << 10
	slotsAt    = 8 << 10
	slots      = 12
	slotSize   = 5 << 10
	ownAt      = slotsAt + slots*slotSize
	ownSlots   = 48
	endSize    = ownAt + ownSlots*slotSize
)

// fill and holds make and check what is told from all else by its salt.
func fill(b []byte, salt uint64) {
	rng := rand.New(rand.NewPCG(salt, 2))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

func holds(b []byte, salt uint64) bool {
	want := make([]byte, len(b))
	fill(want, salt)
	return bytes.Equal(b, want)
}

// end is one end of a connection.
type end struct {
	s    *side
	rng  *rand.Rand
	qp   *QP
	mr   *MR
	recv *MR // not nil: receives of its own
	mw   *MW
	fast *MR
	salt uint64 // of what this end sends and may be read

	met  chan struct{} // closed when connecting has succeeded or failed
	peer RemoteBuf
	from uint64 // the peer's salt, 0 if it is not known

	// sentAll tells that the connection ended when the peer had got everything, heardAll
	// that the peer ended it.
	sentAll, heardAll bool

	mu       sync.Mutex
	next     uint32 // guarded by mu: the next message that is to come
	posted   uint32 // guarded by mu: messages
	full     bool   // guarded by mu: no more of them
	adds     uint64 // guarded by mu: atomics that were posted
	added    uint64 // guarded by mu: those that succeeded
	window   uint32 // guarded by mu: STag that the peer has bound for us
	own      int    // slots of the own memory that were used
	writes   int
	answered bool
}

// String implements fmt.Stringer.
func (e *end) String() string { return fmt.Sprintf("QP %d of %s", e.qp.Num(), e.s.addr) }

func (e *end) errorf(format string, args ...any) {
	e.s.w.t.Errorf("seed %#x: %v: %s", e.s.w.seed, e, fmt.Sprintf(format, args...))
}

const endDepth = 64

// newEnd makes a queue pair with a region.
func (s *side) newEnd(seed uint64) *end {
	e := &end{s: s, rng: rand.New(rand.NewPCG(seed, 3)), salt: seed | 1, met: make(chan struct{})}
	cfg := QPConfig{SendCQ: s.scq, RecvCQ: s.rcq, SendDepth: 8 + e.rng.IntN(endDepth), RecvDepth: endDepth, MaxRecvSGE: 1}
	if e.rng.IntN(2) == 0 {
		cfg.SRQ = s.srq
	}
	var err error
	if e.mr, err = s.pd.Register(make([]byte, endSize), RemoteRead|RemoteWrite|RemoteAtomic|MWBind); err == nil {
		if e.mw, err = s.pd.AllocMW(); err == nil {
			if e.fast, err = s.pd.AllocMR(slotSize); err == nil {
				e.qp, err = s.pd.NewQP(cfg)
			}
		}
	}
	if err != nil {
		s.w.t.Fatal(err)
	}
	fill(e.mr.Bytes()[readAt:readAt+readSize], e.salt)
	e.mr.Sync()
	s.mu.Lock()
	s.byQP[e.qp] = e
	s.mu.Unlock()
	if cfg.SRQ == nil {
		if e.recv, err = s.pd.Register(make([]byte, endDepth*maxMessage), LocalWrite); err != nil {
			s.w.t.Fatal(err)
		}
		for i := range endDepth {
			id := s.post(&request{e: e, must: true, buf: e.recv.Bytes()[i*maxMessage:][:maxMessage]})
			if err := e.qp.PostRecv(RecvWR{ID: id, SGL: []SGE{e.recv.Slice(i*maxMessage, maxMessage)}}); err != nil {
				e.errorf("receive: %v", err)
			}
		}
	}
	return e
}

// cardLen is the length of a card.
const cardLen = 12

// card is the private data: what the peer must know.
func (e *end) card() ConnParams {
	b := binary.BigEndian.AppendUint64(nil, e.salt)
	return ConnParams{PrivateData: binary.BigEndian.AppendUint32(b, e.mr.STag())}
}

func (e *end) meet(card []byte) {
	e.from = binary.BigEndian.Uint64(card)
	e.peer = RemoteBuf{STag: binary.BigEndian.Uint32(card[8:]), Len: endSize}
}

// active connects, and uses the connection.
func (e *end) active(to target) {
	defer e.free()
	ctx := context.Background()
	if e.rng.IntN(4) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(e.rng.IntN(30))*time.Millisecond)
		defer cancel()
	}
	info, err := e.s.connect(ctx, to, e.qp, e.card())
	var rejected *RejectError
	if err == nil {
		e.meet(info.PrivateData)
	}
	close(e.met)
	switch {
	case err == nil:
		e.use()
	case errors.Is(err, ddpsctp.ErrNoStream):
		time.Sleep(20 * time.Millisecond)
	case errors.As(err, &rejected), errors.Is(err, ErrRefused), errors.Is(err, context.DeadlineExceeded), e.s.ctx.Err() != nil:
	default:
		// The peer restarts.
		time.Sleep(50 * time.Millisecond)
	}
}

// passive accepts, and uses the connection.
func (e *end) passive(r *ConnRequest) {
	defer e.free()
	if len(r.PrivateData) != cardLen { // see wantStreams
		close(e.met)
		if r.Accept(e.qp, ConnParams{}) == nil {
			<-e.qp.Done()
		}
		return
	}
	e.meet(r.PrivateData)
	close(e.met)
	if e.rng.IntN(4) == 0 {
		time.Sleep(time.Duration(e.rng.IntN(40)) * time.Millisecond)
	}
	if r.Accept(e.qp, e.card()) == nil {
		e.use()
	}
}

// use posts work of all kinds, and ends the connection, or waits until the peer does.
func (e *end) use() {
	e.s.w.conns.Add(1)
	for range e.rng.IntN(40) {
		if e.qp.State() != StateRTS {
			break
		}
		e.step()
		if e.rng.IntN(4) == 0 {
			time.Sleep(time.Duration(e.rng.IntN(2000)) * time.Microsecond)
		}
	}
	switch e.rng.IntN(8) {
	case 0: // at once
		e.qp.Close()
	case 1:
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(e.rng.IntN(3000))*time.Microsecond)
		defer cancel()
		e.qp.Disconnect(ctx)
	case 2:
		if err := e.qp.Reset(context.Background()); err != nil {
			e.errorf("reset: %v", err)
		}
	case 3, 4, 5:
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		e.sentAll = e.qp.Disconnect(ctx) == nil && errors.Is(e.qp.Err(), ErrDisconnected)
	default: // the peer does, or both wait
		select {
		case <-e.qp.Done():
			e.heardAll = true
		case <-time.After(5 * time.Second):
		}
	}
}

// post posts a work request, and reports whether it was taken.
func (e *end) post(wr SendWR, r *request) bool {
	r.e, r.what = e, wr.Op
	r.must = wr.Flags&Signaled != 0
	wr.ID = e.s.post(r)
	for {
		err := e.qp.PostSend(wr)
		switch {
		case err == nil:
			return true
		case errors.Is(err, ErrQueueFull):
			time.Sleep(time.Millisecond)
			continue
		case !errors.Is(err, ErrQPState):
			e.errorf("posting %v: %v", wr.Op, err)
		}
		e.s.unpost(wr.ID)
		return false
	}
}

// space returns own memory that nothing else uses, or nil.
func (e *end) space(n int) ([]byte, SGE) {
	if e.own == ownSlots {
		return nil, SGE{}
	}
	at := ownAt + e.own*slotSize
	e.own++
	return e.mr.Bytes()[at : at+n : at+n], e.mr.Slice(at, n)
}

// flags returns those of a work request.
func (e *end) flags() Flags { return Flags(e.rng.IntN(8)) & (Signaled | Solicited | Fence) }

// message headers: sequence number, slot written before or noSlot, STag bound or 0.
const (
	headerLen = 12
	noSlot    = 0xffff
)

// send sends a message, if it may be sent: the peer has as many receives.
func (e *end) send(slot int, n uint32, stag uint32) {
	e.mu.Lock()
	seq := e.posted
	if e.full = e.full || seq == endDepth; e.full {
		e.mu.Unlock()
		return
	}
	e.posted++
	invalidate := uint32(0)
	if e.rng.IntN(2) == 0 {
		invalidate, e.window = e.window, 0
	}
	e.mu.Unlock()
	wr := SendWR{Op: OpSend, Flags: e.flags()}
	if slot < 0 && stag == 0 && e.rng.IntN(4) == 0 {
		wr.Op, wr.Imm = OpImm, uint64(seq)<<32|noSlot
		e.postMessage(wr, seq)
		return
	}
	if invalidate != 0 {
		wr.Op, wr.Invalidate = OpSendInvalidate, invalidate
	}
	var h [headerLen]byte
	binary.BigEndian.PutUint32(h[:], seq)
	binary.BigEndian.PutUint16(h[4:], uint16(slot))
	binary.BigEndian.PutUint16(h[6:], uint16(n))
	binary.BigEndian.PutUint32(h[8:], stag)
	size := headerLen + e.rng.IntN(maxMessage-headerLen)
	if e.rng.IntN(2) == 0 {
		size = headerLen + e.rng.IntN(40)
	}
	b := make([]byte, size)
	if size > DefaultInline {
		var sge SGE
		if b, sge = e.space(size); b == nil {
			b = make([]byte, DefaultInline)
		} else {
			wr.SGL = []SGE{sge}
		}
	}
	copy(b, h[:])
	fill(b[headerLen:], e.salt+uint64(seq))
	if wr.SGL == nil {
		wr.Inline = b
	}
	e.postMessage(wr, seq)
}

func (e *end) postMessage(wr SendWR, seq uint32) {
	if !e.post(wr, &request{seq: seq}) {
		e.mu.Lock()
		e.posted, e.full = seq, true
		e.mu.Unlock()
	}
}

// step posts something.
func (e *end) step() {
	switch e.rng.IntN(8) {
	case 0, 1:
		e.send(-1, 0, 0)
	case 2, 3: // a slot, and what tells so
		n := 1 + e.rng.IntN(slotSize)
		b, sge := e.space(n)
		if b == nil || e.writes == slots {
			return
		}
		slot := e.writes
		e.writes++
		fill(b, e.salt+uint64(slot)+1000)
		wr := SendWR{Op: OpWrite, Flags: e.flags(), SGL: []SGE{sge}, Remote: e.peer.At(uint64(slotsAt + slot*slotSize))}
		if e.rng.IntN(2) > 0 {
			if e.post(wr, &request{}) {
				e.send(slot, uint32(n), 0)
			}
			return
		}
		e.mu.Lock()
		seq := e.posted
		if e.full = e.full || seq == endDepth; e.full {
			e.mu.Unlock()
			return
		}
		e.posted++
		e.mu.Unlock()
		wr.Op, wr.Imm = OpWriteImm, uint64(seq)<<32|uint64(n)<<16|uint64(slot)
		e.postMessage(wr, seq)
	case 4, 5:
		n := 1 + e.rng.IntN(readSize)
		if b, sge := e.space(n); b != nil {
			e.post(SendWR{Op: OpRead, Flags: e.flags(), SGL: []SGE{sge}, Remote: e.peer.At(readAt)}, &request{buf: b})
		}
	case 6:
		b, sge := e.space(8)
		if b == nil {
			return
		}
		e.mu.Lock()
		e.adds++
		old := e.adds - 1
		e.mu.Unlock()
		wr := SendWR{Op: OpFetchAdd, Flags: e.flags() | Signaled, SGL: []SGE{sge}, Remote: e.peer, Operand: 1}
		if e.rng.IntN(2) == 0 {
			wr.Op, wr.Compare, wr.CompareMask, wr.OperandMask, wr.Operand = OpCompareSwap, old, ^uint64(0), ^uint64(0), old+1
		}
		e.post(wr, &request{buf: b, seq: uint32(old)})
	default:
		e.bind()
	}
}

// bind has an STag for the peer, of a window or by fast registration, which the peer
// invalidates or, once, this end.
func (e *end) bind() {
	if e.answered {
		return
	}
	e.answered = true
	b := &Bind{MW: e.mw, MR: e.mr, Off: slotsAt, Len: slotSize, Access: RemoteRead}
	op, stag := OpBindMW, e.mw.STag()
	if e.rng.IntN(2) == 0 {
		b = &Bind{MR: e.fast, Buf: make([]byte, slotSize), Access: RemoteRead}
		op, stag = OpFastRegister, e.fast.STag()
	}
	if !e.post(SendWR{Op: op, Flags: Signaled, Bind: b}, &request{}) {
		return
	}
	if e.rng.IntN(2) == 0 {
		e.post(SendWR{Op: OpLocalInvalidate, Flags: e.flags(), Invalidate: stag}, &request{})
		return
	}
	e.send(-1, 0, stag)
}

// sent takes the completion of a send work request.
func (e *end) sent(wc *WC, r *request) {
	if wc.Op != r.what {
		e.errorf("completion of %v, want %v", wc.Op, r.what)
	}
	if <-e.met; wc.Status != StatusSuccess || e.from == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch r.what {
	case OpRead:
		if int(wc.Len) != len(r.buf) || !holds(r.buf, e.from) {
			e.errorf("%d bytes that were read differ", wc.Len)
		}
	case OpFetchAdd, OpCompareSwap:
		e.added++
		if got := binary.NativeEndian.Uint64(r.buf); got != uint64(r.seq) {
			e.errorf("%v %d returned %d", r.what, r.seq, got)
		}
	}
}

// received takes the completion of a receive.
func (e *end) received(wc *WC, b []byte) {
	if <-e.met; wc.Status != StatusSuccess || e.from == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var seq, stag uint32
	var slot, n int
	if wc.Flags&WithImm != 0 {
		seq = uint32(wc.Imm >> 32)
		if slot = int(wc.Imm & 0xffff); slot != noSlot {
			n = int(wc.Imm >> 16 & 0xffff)
		}
	} else {
		b = b[:wc.Len]
		seq, slot, n = binary.BigEndian.Uint32(b), int(binary.BigEndian.Uint16(b[4:])), int(binary.BigEndian.Uint16(b[6:]))
		stag = binary.BigEndian.Uint32(b[8:])
		if !holds(b[headerLen:], e.from+uint64(seq)) {
			e.errorf("message %d differs", seq)
		}
	}
	if seq != e.next {
		e.errorf("message %d, want %d", seq, e.next)
	}
	e.next = seq + 1
	if stag != 0 {
		e.window = stag
	}
	if slot != noSlot {
		e.mr.Sync()
		if !holds(e.mr.Bytes()[slotsAt+slot*slotSize:][:n], e.from+uint64(slot)+1000) {
			e.errorf("slot %d was not written before message %d came", slot, seq)
		}
	}
}

// outcome is what is counted of an end.
type outcome struct {
	name                 string
	posted, next         uint32
	adds, added, counter uint64
	sentAll, heardAll    bool
	err                  error
}

// compare compares what went in at an end with what came out at the other one, when
// both are over.
func (w *world) compare(e *end) {
	if e.from == 0 {
		return
	}
	e.mu.Lock()
	o := &outcome{e.String(), e.posted, e.next, e.adds, e.added, binary.NativeEndian.Uint64(e.mr.Bytes()), e.sentAll, e.heardAll, e.qp.Err()}
	e.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.over[e.from]
	if p == nil {
		w.over[e.salt] = o
		return
	}
	delete(w.over, e.from)
	for _, x := range [][2]*outcome{{o, p}, {p, o}} {
		from, to := x[0], x[1]
		whole := from.sentAll && to.heardAll
		if to.counter < from.added || to.counter > from.adds {
			e.errorf("%d of %d atomics of %s succeeded, %s counts %d", from.added, from.adds, from.name, to.name, to.counter)
		}
		if to.next > from.posted || whole && to.next != from.posted {
			e.errorf("%s posted %d messages, %s received %d; it ended %v", from.name, from.posted, to.name, to.next, to.err)
		}
		if whole {
			w.whole++
		}
	}
}

// free closes what the end has.
func (e *end) free() {
	e.qp.Close()
	<-e.qp.Done()
	// All completions are queued; those of this queue pair are taken before its memory
	// goes.
	for _, cq := range []*CQ{e.s.scq, e.s.rcq} {
		for cq.Len() > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(10 * time.Millisecond)
	e.mr.Invalidate()
	e.s.w.compare(e)
	if e.mw.Bound() {
		e.mw.Invalidate()
	}
	for what, f := range map[string]func() error{"window": e.mw.Close, "fast registration": e.fast.Close} {
		if err := f(); err != nil {
			e.errorf("closing the %s: %v", what, err)
		}
	}
	if err := e.mr.Close(); err != nil {
		e.errorf("closing the region: %v", err)
	}
	if e.recv != nil {
		if err := e.recv.Close(); err != nil {
			e.errorf("closing the receives: %v", err)
		}
	}
	e.s.mu.Lock()
	delete(e.s.byQP, e.qp)
	for id, r := range e.s.posted { // not signaled
		if r.e == e && !r.must {
			delete(e.s.posted, id)
		}
	}
	e.s.mu.Unlock()
}
