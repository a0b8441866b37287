package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/envelope"
)

// schedulesEnv, in the environment, is the number of schedules that
// TestMatchingRandom runs.
const schedulesEnv = "WEFT_MATCH_SCHEDULES"

// TestMatchingRandom runs random schedules — messages sent, receives posted,
// probed for and cancelled, over links that lose and reorder — and compares
// what was matched with the reference, and with the rules of MPI-4.1, Section
// 3.5.
func TestMatchingRandom(t *testing.T) {
	base := rand.Uint64()
	runs := 3000
	if testing.Short() || testenv.Race {
		runs = 100
	}
	if s := os.Getenv(schedulesEnv); s != "" {
		var err error
		if runs, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	matched, written, read := 0, 0, 0
	for i := range runs {
		seed := base + uint64(i)
		s := newSchedule(t, seed)
		if err := s.run(); err != nil {
			t.Fatalf("seed %d, %d ranks, overtaking %v, rendezvous %v: %v", seed, len(s.worlds), s.ref.overtaking, s.comms[0].comm.Hints.Load().Rendezvous, err)
		}
		if !checkEmpty(t, s.chaos) || !s.bulk.checkEmpty(t) {
			t.Fatalf("seed %d", seed)
		}
		matched += len(s.recvs)
		written += s.bulk.written
		read += s.bulk.read
	}
	t.Logf("%d schedules from seed %d, %d receives, %d bodies written, %d read", runs, base, matched, written, read)
	if written == 0 || read == 0 {
		t.Error("no body was written to its receive, or none read")
	}
}

// schedule is one run: rank 0 receives what the others send.
type schedule struct {
	*chaos
	bulk  *chaosBulks
	comms []*Comm // of each rank
	tags  int
	ref   *reference
	msgs  [][]*refMsg          // by source, in the order sent
	way   map[[2]int][]*refMsg // by source and tag: on their way
	sends []schedSend
	recvs []*schedRecv
	err   error // the first contradiction
}

type schedSend struct {
	*Request
	buf []byte
}

type schedRecv struct {
	*refRecv
	req       *Request
	buf       [700]byte
	cancelled bool
	checked   bool
}

func newSchedule(t *testing.T, seed uint64) *schedule {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	n := 2 + rng.IntN(3)
	overtaking := rng.IntN(3) == 0
	s := &schedule{
		chaos: newChaos(t, n, rng, WithEager(300), WithUnexpected(n*(600+rng.IntN(8000))), WithStreams(1+rng.IntN(5))),
		tags:  1 + rng.IntN(5), ref: newReference(overtaking),
		msgs: make([][]*refMsg, n), way: map[[2]int][]*refMsg{},
	}
	s.bulk = s.chaos.addBulk()
	for _, w := range s.worlds {
		c, err := w.Comm().DupWithInfo(context.Background(), Info{
			InfoAllowOvertaking: strconv.FormatBool(overtaking), InfoRendezvous: rendezvousNames[rng.IntN(len(rendezvousNames))]})
		if err != nil {
			t.Fatal(err)
		}
		s.comms = append(s.comms, c)
	}
	loss := []int{0, 30, 4}[rng.IntN(3)]
	for _, l := range s.links {
		l.loss = loss
		if src := l.to.Rank; l.to.Engine.Rank == 0 {
			l.arrived = func(f *chaosFrame) { s.delivered(src, f) }
		}
	}
	return s
}

// delivered tells the reference of a message that reached rank 0.
func (s *schedule) delivered(src int, f *chaosFrame) {
	var v envelope.Header
	if !v.Decode(f.data[:envelope.Kind(f.data[0]).HeaderLen()]) || !v.Kind.Matched() {
		return
	}
	k := [2]int{src, int(v.Tag)}
	m := s.way[k][0]
	s.way[k] = s.way[k][1:]
	if want := !s.ref.overtaking; v.Flags&envelope.FlagSeq != 0 != want || want && int(v.Seq) != m.serial {
		s.fail("message %+v has flags %d and number %d", m, v.Flags, v.Seq)
	}
	s.ref.arrive(m)
}

func (s *schedule) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func (s *schedule) run() error {
	for range 150 {
		switch x := s.rng.IntN(20); {
		case x < 6:
			s.send()
		case x < 11:
			s.post(s.pick())
		case x < 18:
			s.step()
		case x == 18:
			s.probe(s.pick())
		case len(s.recvs) > 0:
			r := s.recvs[s.rng.IntN(len(s.recvs))]
			if got, want := r.req.Cancel(), s.ref.cancel(r.refRecv); got != want {
				s.fail("receive %d cancelled: %v, reference %v", r.order, got, want)
			} else if got {
				r.cancelled = true
			}
		}
		if s.compare(); s.err != nil {
			return s.err
		}
	}
	return s.finish()
}

// finish receives everything that is left.
func (s *schedule) finish() error {
	for {
		for s.step() {
		}
		if s.compare(); s.err != nil {
			return s.err
		}
		left := 0
		for _, ms := range s.msgs {
			for _, m := range ms {
				if m.to == nil {
					left++
				}
			}
		}
		if left == 0 {
			break
		}
		if len(s.recvs) > 2000 {
			return fmt.Errorf("%d messages are never received", left)
		}
		s.post(AnySource, AnyTag)
	}
	for i, r := range s.sends {
		if !r.request.Finished.Load() || r.request.Err != nil {
			return fmt.Errorf("send %d: done %v, %w", i, r.request.Finished.Load(), r.request.Err)
		}
	}
	for _, r := range s.recvs {
		if r.got != nil && !r.checked {
			return fmt.Errorf("receive %d is not done", r.order)
		}
	}
	return s.checkRules()
}

func (s *schedule) pick() (src, tag int) {
	src, tag = 1+s.rng.IntN(len(s.worlds)-1), s.rng.IntN(s.tags)
	if s.rng.IntN(3) == 0 {
		src = AnySource
	}
	if s.rng.IntN(3) == 0 {
		tag = AnyTag
	}
	return src, tag
}

func (s *schedule) send() {
	src := 1 + s.rng.IntN(len(s.worlds)-1)
	m := &refMsg{src: src, tag: s.rng.IntN(s.tags), serial: len(s.msgs[src])}
	s.msgs[src] = append(s.msgs[src], m)
	k := [2]int{src, m.tag}
	s.way[k] = append(s.way[k], m)
	b := make([]byte, 2+s.rng.IntN([]int{10, 200, 600}[s.rng.IntN(3)]))
	b[0], b[1] = byte(m.serial), byte(m.serial>>8)
	pattern(b[2:], src*10000+m.serial)
	start := Isend[byte]
	if s.rng.IntN(4) == 0 {
		start = Issend[byte]
	}
	r, err := start(s.comms[src], b, 0, m.tag)
	if err != nil {
		s.fail("send: %w", err)
		return
	}
	s.sends = append(s.sends, schedSend{r, b})
}

func (s *schedule) post(src, tag int) {
	r := &schedRecv{refRecv: &refRecv{src: src, tag: tag, order: len(s.recvs)}}
	var err error
	if r.req, err = Irecv(s.comms[0], r.buf[:], src, tag); err != nil {
		s.fail("receive: %w", err)
		return
	}
	s.ref.post(r.refRecv)
	s.recvs = append(s.recvs, r)
}

func (s *schedule) probe(src, tag int) {
	st, found, err := Iprobe(s.comms[0], src, tag)
	m := s.ref.lookup(src, tag)
	if err != nil || found != (m != nil) || found && (st.Source != m.src || st.Tag != m.tag) {
		s.fail("probe for (%d, %d) = %+v, %v, %v, reference %+v", src, tag, st, found, err, m)
	}
}

// compare checks what the engine has matched so far. The buffers of sends that are
// done are overwritten: their receives must not get that.
func (s *schedule) compare() {
	for _, r := range s.sends {
		if r.request.Finished.Load() {
			clear(r.buf)
		}
	}
	for _, r := range s.recvs {
		if r.checked {
			continue
		}
		if waits := r.req.request.Posted(); waits != (r.got == nil && !r.cancelled) {
			s.fail("receive %d (%d, %d) waits: %v, reference %+v", r.order, r.src, r.tag, waits, r.got)
			return
		}
		st, done, err := r.req.Test()
		switch {
		case !done:
			continue
		case r.cancelled:
			if !errors.Is(err, ErrCanceled) {
				s.fail("receive %d was cancelled: %w", r.order, err)
			}
		case err != nil:
			s.fail("receive %d: %w", r.order, err)
		default:
			if serial := int(r.buf[0]) | int(r.buf[1])<<8; st.Source != r.got.src || st.Tag != r.got.tag || serial != r.got.serial {
				s.fail("receive %d (%d, %d) got message %d, %+v, reference %+v", r.order, r.src, r.tag, serial, st, r.got)
			} else if err := checkPattern(r.buf[2:st.Bytes], r.got.src*10000+serial); err != nil {
				s.fail("receive %d: %w", r.order, err)
			}
		}
		r.checked = true
	}
}

// checkRules checks the final matching without the reference: of two messages
// of one sender that a receive accepts it may get the later one only if the
// earlier went to an older receive. With overtaking this holds for messages of
// one tag.
func (s *schedule) checkRules() error {
	for _, r := range s.recvs {
		if r.got == nil {
			continue
		}
		for _, m := range s.msgs[r.got.src][:r.got.serial] {
			if s.ref.overtaking && m.tag != r.got.tag {
				continue
			}
			if r.accepts(m) && m.to.order > r.order {
				return fmt.Errorf("receive %d (%d, %d) got message %d of %d, though it accepts the earlier message %d, which went to receive %d",
					r.order, r.src, r.tag, r.got.serial, r.got.src, m.serial, m.to.order)
			}
		}
	}
	return nil
}
