package core

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// borrower is a host that has its messages borrowed, as a driver does.
type borrower struct {
	*host
	rng  *rand.Rand
	mems []*retainedMem // all that the association has kept
	left int            // bytes that EndBorrow copied; n counts its copies
	n    int
}

// retainedMem is the memory of a GSO batch that the association retains. Its release overwrites it.
type retainedMem struct {
	mem []byte
	n   int
}

func (m *retainedMem) Released(error) {
	m.n++
	spoil(m.mem)
}

func spoil(b []byte) {
	for i := range b {
		b[i] = 0xa5
	}
}

// copied is the copy that EndBorrow makes of the unsent end of a message. Its release overwrites it.
type copied struct {
	mem []byte
	n   int
}

func (c *copied) Released(error) { c.n++; spoil(c.mem) }

// sendBorrowed sends a message of n bytes from a borrowed buffer, and overwrites the buffer afterwards.
func (l *borrower) sendBorrowed(m *tx.Message, n int) {
	p := l.p
	p.t.Helper()
	a := l.assoc
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(l.rng.Uint32())
	}
	m.Body, m.Borrowed, m.Force = slices.Clone(data[len(m.Header):]), true, true
	copy(data, m.Header)
	if err := a.Send(p.now, m); err != nil {
		p.t.Fatal(err)
	}
	if m.Lifetime > 0 {
		// It may not arrive.
	} else if o := ledgerOf(l.out, m.SID); m.Unordered {
		o.unordered = append(o.unordered, data)
	} else {
		o.ordered = append(o.ordered, data)
	}
	l.poll()
	a.EndBorrow(l.duplicate)
	spoil(m.Body)
	if a.Borrowing() {
		p.t.Fatal("the buffer is still borrowed")
	}
	l.check()
}

func (l *borrower) duplicate(b []byte) ([]byte, tx.Owner) {
	c := &copied{mem: slices.Clone(b)}
	l.left += len(b)
	l.n++
	return c.mem, c
}

// poll transmits a few batches at most, as a driver would within its window.
func (l *borrower) poll() {
	a, p := l.assoc, l.p
	for range 1 + l.rng.IntN(5) {
		var out []byte
		var tx Transmit
		var ok bool
		segs := 1 + l.rng.IntN(44)
		switch {
		case !a.Borrowing() || a.BatchOpen():
			out, tx, ok = a.PollTransmit(p.now, make([]byte, 0, MaxPacket), segs)
		case a.CanBorrow():
			m := &retainedMem{mem: make([]byte, MaxPacket)}
			var kept bool
			if out, tx, ok, kept = a.PollTransmitRetained(p.now, m.mem[:0], segs, m); kept {
				l.mems = append(l.mems, m)
			} else if tx.Retained {
				p.t.Fatal("kept and not kept")
			}
		default:
			return
		}
		if !ok {
			return
		}
		p.checkTransmit(out, tx)
		for len(out) > 0 {
			n := min(tx.SegSize, len(out))
			p.post(l.host, Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, ECN: tx.ECN, Data: out[:n]})
			out = out[n:]
		}
		l.check()
		if tx.Last && !a.Borrowing() {
			if _, tx, ok := a.PollTransmit(p.now, make([]byte, 0, MaxPacket), segs); ok {
				p.t.Fatalf("%d packets after the last", tx.Segs)
			}
		}
	}
}

// check checks the invariants of the retransmission copies.
func (l *borrower) check() {
	p, s := l.p, l.assoc.tx.sb
	p.t.Helper()
	if l.assoc.BatchOpen() != s.Retaining() {
		p.t.Fatalf("a batch is open: %v, and its retransmission copy: %v", l.assoc.BatchOpen(), s.Retaining())
	}
	if err := checkSendAccounts(l.assoc); err != nil {
		p.t.Fatal(err)
	}
}

// Messages from borrowed buffers arrive as they were sent, whatever is lost, however few packets
// a call builds, and whatever else is sent; and what has been released is not read again.
func TestBorrowedMessages(t *testing.T) {
	kept, copies, bytesLeft, sent := 0, 0, 0, 0
	for seed := range uint64(60) {
		cfg := Config{NoInterleaving: seed%2 == 1, NoECN: seed%7 == 3, ZeroChecksum: seed%8 == 6, Scheduler: tx.Scheduler(seed / 4 % 6)}
		if seed%5 == 4 {
			cfg.RecvBuffer = 60_000
		}
		p := newPair(t, seed, &cfg)
		p.zeroSum = cfg.ZeroChecksum
		p.net.delay = 50 * time.Microsecond
		p.net.loss, p.net.dup, p.net.jitter = int(seed%3)*10, int(seed%4), 20*time.Microsecond
		p.connect()
		l := &borrower{host: p.a, rng: rand.New(rand.NewPCG(seed, 2))}
		// The round trip must be known to be short.
		for range 4 {
			p.a.send(0, 300_000)
			p.drive()
		}
		for range 120 {
			m := &tx.Message{SID: uint16(l.rng.IntN(3)), Unordered: l.rng.IntN(4) == 0, Immediate: l.rng.IntN(4) == 0}
			if l.rng.IntN(12) == 0 {
				m.SID, m.Lifetime = 5, 1+clock.Time(l.rng.IntN(int(time.Millisecond)))
			}
			if l.rng.IntN(3) == 0 {
				m.Header = make([]byte, 1+l.rng.IntN(tx.MaxHeader))
			}
			n := 1 + l.rng.IntN(50_000)
			switch l.rng.IntN(6) {
			case 0:
				n = 200 + l.rng.IntN(3000)
			case 1:
				n = 1 + l.rng.IntN(4)*l.assoc.MaxPayload()
			}
			if n <= len(m.Header) {
				m.Header = nil
			}
			if l.rng.IntN(5) == 0 {
				p.z.send(0, n)
			}
			if m.Lifetime != 0 || m.Header != nil || l.rng.IntN(5) > 0 {
				l.sendBorrowed(m, n)
				sent += n
			} else {
				p.a.sendMsg(m, n)
			}
			switch l.rng.IntN(30) {
			case 0:
				p.advance(time.Second)
			case 1:
				l.assoc.SetPathMTU(l.assoc.paths[0].Remote, 600+l.rng.IntN(900))
			case 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15:
				p.advance(time.Duration(l.rng.IntN(400)) * time.Microsecond)
			}
			l.check()
		}
		p.drive()
		p.wantDelivered()
		if l.assoc.BatchOpen() || l.assoc.tx.sb.RtxCopies() != 0 {
			t.Fatalf("seed %d: %d retransmission copies are left", seed, l.assoc.tx.sb.RtxCopies())
		}
		for _, m := range l.mems {
			if m.n != 1 {
				t.Fatalf("seed %d: memory was released %d times", seed, m.n)
			}
		}
		kept, copies, bytesLeft = kept+len(l.mems), copies+l.n, bytesLeft+l.left
	}
	t.Logf("%d batches retained; %d rests of %d bytes copied of %d bytes sent", kept, copies, bytesLeft, sent)
	if kept < 1000 || bytesLeft == 0 || bytesLeft > sent*3/4 {
		t.Errorf("%d batches retained, %d of %d bytes copied", kept, bytesLeft, sent)
	}
}

// borrowPair returns a pair on a fast network, and the borrower of its end A.
func borrowPair(t *testing.T, cfg *Config) (*pair, *borrower) {
	p := newPair(t, 1, cfg)
	p.net.delay = 50 * time.Microsecond
	p.connect()
	for range 8 {
		p.a.send(0, 400_000)
		p.drive()
	}
	l := &borrower{host: p.a, rng: rand.New(rand.NewPCG(1, 2))}
	if !p.a.assoc.CanBorrow() {
		t.Fatal("cannot borrow")
	}
	return p, l
}

// fill puts so much of several messages under way, and loses it, that a short batch
// waits, and leaves one packet that does.
func (l *borrower) fill() {
	a, p := l.assoc, l.p
	for range 5 {
		l.send(0, 20*a.MaxPayload())
	}
	for ok := true; ok; {
		_, _, ok = a.PollTransmit(p.now, make([]byte, 0, MaxPacket), 1)
	}
	if a.tx.q.Unsent() != int64(a.MaxPayload()) || a.tx.sb.Flight(0) < corkMinBytes {
		p.t.Fatalf("%d bytes under way, %d wait", a.tx.sb.Flight(0), a.tx.q.Unsent())
	}
}

// openedBatch returns a borrower with an open batch of n packets, and 100 bytes that are in no packet yet.
func openedBatch(t *testing.T, n int) (*pair, *borrower) {
	p, l := borrowPair(t, nil)
	a := l.assoc
	l.fill()
	if err := a.Send(p.now, &tx.Message{Body: make([]byte, (n-1)*a.MaxPayload()+100), Borrowed: true}); err != nil {
		t.Fatal(err)
	}
	if _, _, ok, _ := l.pollRetained(20); ok || !a.BatchOpen() || a.tx.openBatch.tx.Segs != n {
		t.Fatalf("sent %v, %d packets wait", ok, a.tx.openBatch.tx.Segs)
	}
	a.EndBorrow(l.duplicate)
	return p, l
}

// next polls for 20 packets in other memory.
func (l *borrower) next() (tx Transmit, ok bool) {
	_, tx, ok = l.assoc.PollTransmit(l.p.now, make([]byte, 0, MaxPacket), 20)
	return tx, ok
}

// acknowledge has a SACK be due.
func (l *borrower) acknowledge() {
	l.assoc.rx.sack.Refused()
	l.assoc.rx.sack.EndPacket(l.p.now, 0, false)
	if !l.assoc.rx.sack.Due(l.p.now) {
		l.p.t.Fatal("no SACK is due")
	}
}

// After whatever makes an open batch leave, or fills it up, there is more to send: Last is not set.
func TestOpenBatchIsNotTheLast(t *testing.T) {
	for _, why := range []string{"heartbeat", "loss", "SACK", "full"} {
		p, l := openedBatch(t, 9)
		a := l.assoc
		segs := 9
		switch why {
		case "heartbeat":
			if err := a.RequestHeartbeat(p.now, a.paths[0].Remote); err != nil {
				t.Fatal(err)
			}
		case "loss":
			a.tx.sb.MarkPath(0)
		case "SACK":
			l.acknowledge()
		default:
			segs = 20
			if err := a.Send(p.now, &tx.Message{Body: make([]byte, 60*a.MaxPayload()), Borrowed: true}); err != nil {
				t.Fatal(err)
			}
		}
		if tx, ok := l.next(); !ok || tx.Segs != segs || tx.Last || !tx.Retained {
			t.Errorf("%s: sent %v, %+v", why, ok, tx)
		}
		if tx, ok := l.next(); !ok || tx.Retained && why != "full" {
			t.Errorf("%s: then sent %v, %+v", why, ok, tx)
		}
	}
}

// Packets in the open batch do not count as in flight when ShouldCork judges how busy the path is.
func TestOpenBatchIsNotUnderWay(t *testing.T) {
	_, l := openedBatch(t, 19)
	a, s := l.assoc, l.assoc.tx.sb
	o := a.tx.openBatch
	base := s.CumTSN() + 1
	cum, chunk := base, (s.Flight(0)+s.FlightChunks(0)-1)/s.FlightChunks(0)
	for s.Flight(0)-o.bytes-int(cum-base)*chunk >= corkMinBytes {
		cum++
	}
	if _, err := s.HandleSack(l.p.now, &wire.Sack{CumTSN: uint32(cum - 1), RWND: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if f := s.Flight(0); f < corkMinBytes || f-o.bytes >= corkMinBytes {
		t.Fatalf("%d bytes in flight, %d wait", f, o.bytes)
	}
	if s.FlightChunks(0)-o.chunks >= corkStreamChunks {
		t.Fatal("too many chunks")
	}
	if a.ShouldCork(20, MaxPacket) {
		t.Error("held")
	}
	if tx, ok := l.next(); !ok || tx.Segs < 19 {
		t.Errorf("sent %v, %+v", ok, tx)
	}
}

// A SACK that is due does not wait in an open batch, with data or without.
func TestSackLeavesAtOnce(t *testing.T) {
	for _, rest := range []int{100, 8*1400 + 100} {
		p, l := borrowPair(t, &Config{NoECN: true})
		a := l.assoc
		full := a.MaxPayload()
		l.fill()
		if err := a.Send(p.now, &tx.Message{Body: make([]byte, 19*full+rest), Borrowed: true}); err != nil {
			t.Fatal(err)
		}
		if _, tx, ok, _ := l.pollRetained(20); !ok || tx.Segs != 20 || a.BatchOpen() || !a.Borrowing() {
			t.Fatalf("sent %v, %+v, open %v", ok, tx, a.BatchOpen())
		}
		l.acknowledge() // of what came meanwhile
		if _, tx, ok, _ := l.pollRetained(20); !ok || a.BatchOpen() || a.rx.sack.Pending() {
			t.Errorf("rest of %d: sent %v, %+v, open %v, a SACK waits %v", rest, ok, tx, a.BatchOpen(), a.rx.sack.Pending())
		}
		l.check()
	}
}

// A message that expires between two of its batches leaves no retransmission copy open: the bytes of
// what is sent next are not in it.
func TestBorrowedMessageExpires(t *testing.T) {
	p, l := borrowPair(t, nil)
	a := l.assoc
	full := a.MaxPayload()
	p.a.send(0, 20*full)
	for ok := true; ok; { // it is under way
		_, ok = l.next()
	}
	if err := a.Send(p.now, &tx.Message{Body: make([]byte, 60*full), Borrowed: true, Lifetime: clock.Time(time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	if _, tx, ok, _ := l.pollRetained(20); !ok || tx.Segs != 20 {
		t.Fatalf("sent %v, %+v", ok, tx)
	}
	p.now += clock.Time(2 * time.Millisecond)
	if _, _, ok, m := l.pollRetained(20); ok {
		t.Fatal("an expired message goes on")
	} else {
		spoil(m.mem)
	}
	l.check()
	body, first := bytes.Repeat([]byte{0x11}, 800), a.tx.sb.NextTSN()
	if err := a.Send(p.now, &tx.Message{Body: body}); err != nil {
		t.Fatal(err)
	}
	l.next()
	if b := a.tx.sb.AppendAgain(nil, first); !bytes.Contains(b, body) {
		t.Errorf("the next message would be sent again as %x", b[:60])
	}
}

// Nothing joins an open batch that has become too large for the path.
func TestOpenBatchOfLargePackets(t *testing.T) {
	p, l := openedBatch(t, 9)
	a := l.assoc
	a.SetPathMTU(a.paths[0].Remote, 1000)
	if err := a.Send(p.now, &tx.Message{Body: make([]byte, 60_000), Borrowed: true}); err != nil {
		t.Fatal(err)
	}
	if tx, ok := l.next(); !ok || tx.Segs != 9 {
		t.Errorf("sent %v, %+v", ok, tx)
	}
}

// A peer that acknowledges what waits in an open batch violates the protocol as one that
// acknowledges what does not exist.
func TestSackOfOpenBatch(t *testing.T) {
	for _, gap := range []bool{false, true} {
		_, l := openedBatch(t, 9)
		s := l.assoc.tx.sb
		sk := wire.Sack{CumTSN: uint32(s.NextTSN() - 10), RWND: 1 << 20}
		if _, err := s.HandleSack(l.p.now, &sk); err != nil {
			t.Fatalf("what has left: %v", err)
		}
		if sk.CumTSN++; gap {
			sk.CumTSN--
			b := wire.AppendSack(nil, sk.CumTSN, sk.RWND, []wire.GapBlock{{Start: 1, End: 1}}, nil)
			it := wire.NewChunks(b)
			it.Next()
			sk, _ = wire.ParseSack(*it.Current())
		}
		if _, err := s.HandleSack(l.p.now, &sk); err != tx.ErrAckUnsent {
			t.Errorf("gap %v: %v, want ErrAckUnsent", gap, err)
		}
	}
}

// pollRetained polls for one batch in memory that the association may retain.
func (l *borrower) pollRetained(segs int) (out []byte, tx Transmit, ok bool, m *retainedMem) {
	m = &retainedMem{mem: make([]byte, MaxPacket)}
	out, tx, ok, kept := l.assoc.PollTransmitRetained(l.p.now, m.mem[:0], segs, m)
	if kept {
		l.mems = append(l.mems, m)
	}
	return out, tx, ok, m
}

// A batch that is not full stays open for the next message, and goes on in the same
// memory; of the message only what does not fill a packet is copied.
func TestOpenBatchGoesOn(t *testing.T) {
	p, l := borrowPair(t, nil)
	a := l.assoc
	full := a.MaxPayload()
	l.fill()
	body := bytes.Repeat([]byte{1, 2, 3}, 3*full) // nine packets' worth and a bit
	if err := a.Send(p.now, &tx.Message{Body: body[:8*full+100], Borrowed: true}); err != nil {
		t.Fatal(err)
	}
	before, left := a.tx.sb.Flight(0), a.tx.dataPackets()
	if out, _, ok, _ := l.pollRetained(20); ok || !a.BatchOpen() {
		t.Fatalf("%d bytes sent, open %v", len(out), a.BatchOpen())
	}
	packets := a.Stats().PacketsSent
	if n := a.tx.openBatch; n.tx.Segs != 9 || n.chunks != 9 || n.bytes != a.tx.sb.Flight(0)-before {
		t.Fatalf("open batch: %+v", n)
	}
	a.EndBorrow(l.duplicate)
	if l.left != 100 {
		t.Fatalf("%d bytes were copied, want 100", l.left)
	}
	if _, _, ok := a.PollTransmit(p.now, make([]byte, 0, MaxPacket), 20); ok || !a.BatchOpen() || a.Idle(p.now) {
		t.Fatalf("sent without need %v, open %v, idle %v", ok, a.BatchOpen(), a.Idle(p.now))
	}
	if !a.ShouldCork(20, MaxPacket) || a.ShouldCork(9, MaxPacket) {
		t.Error("not held, or although it is full")
	}
	if n := a.tx.dataPackets(); n != left {
		t.Errorf("%d packets with data counted that did not leave", n-left)
	}
	if a.Stats().PacketsSent != packets {
		t.Error("packets counted that did not leave")
	}
	// The next message fills it up, and begins the next one.
	if err := a.Send(p.now, &tx.Message{Body: make([]byte, 16*full), Borrowed: true}); err != nil {
		t.Fatal(err)
	}
	out, tx, ok := a.PollTransmit(p.now, make([]byte, 0, MaxPacket), 20)
	if !ok || tx.Segs != 20 || !tx.Retained || &out[0] != &l.mems[0].mem[0] || a.BatchOpen() {
		t.Fatalf("sent %v: %d packets, kept %v, open %v", ok, tx.Segs, tx.Retained, a.BatchOpen())
	}
	p.checkTransmit(out, tx)
	if _, _, ok, _ := l.pollRetained(20); ok || a.tx.openBatch.tx.Segs != 5 {
		t.Fatalf("sent %v, %d packets wait", ok, a.tx.openBatch.tx.Segs)
	}
	a.EndBorrow(l.duplicate)
	spoil(body)
	// Something else that is due has it leave.
	if err := a.RequestHeartbeat(p.now, a.paths[0].Remote); err != nil {
		t.Fatal(err)
	}
	if _, tx, ok := a.PollTransmit(p.now, make([]byte, 0, MaxPacket), 20); !ok || tx.Segs != 5 || !tx.Retained {
		t.Fatalf("sent %v, %d packets", ok, tx.Segs)
	}
}

// Nothing waits for ever: the tail loss probe sends the open batch.
func TestProbeSendsOpenBatch(t *testing.T) {
	p, l := openedBatch(t, 5)
	a := l.assoc
	private(a.tx.sb, "paths.0.rack.probeOut").SetBool(true) // an earlier one is unanswered
	at, probes := a.NextTimeout(), a.tx.sb.Stats().Probes
	if at == 0 || at > p.now+clock.Time(100*time.Millisecond) {
		t.Fatalf("no probe is due: %v", at)
	}
	p.now = at
	a.HandleTimeout(at)
	if st := a.tx.sb.Stats(); st.Probes != probes+1 || a.tx.sb.HasRtx() {
		t.Fatalf("%d probes, something to retransmit %v", st.Probes, a.tx.sb.HasRtx())
	}
	if _, tx, ok := a.PollTransmit(p.now, make([]byte, 0, MaxPacket), 20); !ok || tx.Segs != 5 || !tx.Retained || a.tx.sb.Permit() {
		t.Fatalf("sent %v: %+v, permit %v", ok, tx, a.tx.sb.Permit())
	}
}

// The end of an association and a restart of the peer release the memory of batches, that
// of an open batch included.
func TestEndReleasesRtxCopies(t *testing.T) {
	for _, end := range []string{"abort", "restart", "release"} {
		p, l := borrowPair(t, nil)
		a := l.assoc
		l.fill()
		m := &tx.Message{Body: make([]byte, 4*a.MaxPayload()+5), Borrowed: true}
		if err := a.Send(p.now, m); err != nil {
			t.Fatal(err)
		}
		if _, _, ok, _ := l.pollRetained(20); ok || !a.BatchOpen() {
			t.Fatalf("sent %v, open %v", ok, a.BatchOpen())
		}
		if end != "abort" {
			a.EndBorrow(l.duplicate)
		}
		switch end {
		case "abort":
			a.Abort(p.now, nil)
		case "release":
			a.Release()
		default:
			p.z.setAssoc(nil)
			p.z.dial(p.a)
			p.a.listen()
			p.advance(time.Second)
		}
		for _, r := range a.TakeReleases(nil) {
			r.Owner.Released(r.Err)
		}
		if a.BatchOpen() || a.Borrowing() || len(l.mems) != 1 || l.mems[0].n != 1 {
			t.Errorf("%s: open %v, borrowing %v, %d batches, released %d times", end, a.BatchOpen(), a.Borrowing(), len(l.mems), l.mems[0].n)
		}
		a.EndBorrow(func([]byte) ([]byte, tx.Owner) { t.Error("a message that is gone was copied"); return nil, nil })
	}
}
