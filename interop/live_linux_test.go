package interop

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// TestUsrsctp has our stack talk to usrsctp.
func TestUsrsctp(t *testing.T) {
	bounded(t)
	testenv.Slow(t, "a peer on usrsctp")
	// Linux numbers the second fragment of an interleaved message 0, see
	// rowInterleaving.
	runRows(t, usrsctpStack(t), append(rows, row{"interleaved message in pieces", rowPieces(true)}))
}

// TestKernel has our stack talk to the one of the Linux kernel in a guest.
func TestKernel(t *testing.T) {
	bounded(t)
	testenv.Slow(t, "boots a guest")
	runRows(t, kernelStack(t), append(rows, row{"priority in", rowPriorityIn}))
}

// A row is one thing that is tried with each stack, with either side opening
// the association.
type row struct {
	name string
	run  func(t *testing.T, o setup)
}

var rows = []row{
	{"echo", rowEcho},
	{"bulk out", rowBulkOut},
	{"bulk in", rowBulkIn},
	{"bulk both ways", rowBulkBoth},
	{"many streams", rowStreams},
	{"unordered", rowUnordered},
	{"big messages", rowBig},
	{"slow reader", rowSlowReader},
	{"loss 1 percent", rowLoss(faults{loss: 0.01, seed: 1})},
	{"loss 5 percent", rowLoss(faults{loss: 0.05, seed: 5})},
	{"disorder", rowLoss(faults{swap: 0.05, dup: 0.02, corrupt: 0.005, seed: 7})},
	{"we abort", rowWeAbort},
	{"peer aborts", rowPeerAborts},
	{"we shut down", rowWeShutDown},
	{"peer shuts down", rowPeerShutsDown},
	{"both shut down", rowBothShutDown},
	{"adaptation", rowAdaptation},
	{"no interleaving", rowNoInterleaving},
	{"interleaving", rowInterleaving},
	{"message in pieces", rowPieces(false)},
	{"peer restarts", rowPeerRestarts},
	{"we restart", rowWeRestart},
	{"heartbeats", rowHeartbeats},
	{"path failure", rowPathFailure},
	{"partial reliability out", rowPROut},
	{"partial reliability in", rowPRIn},
	{"lifetime out", rowTimedOut},
	{"lifetime in", rowTimedIn},
	{"priority out", rowPriorityOut},
	{"authentication", rowAuth},
	{"authentication by another key", rowWrongKey},
	{"reset our streams", rowResetOut},
	{"reset their streams", rowResetIn},
	{"peer resets its streams", rowPeerResetsOut},
	{"peer resets our streams", rowPeerResetsIn},
	{"reset all", rowResetAll},
	{"peer resets all", rowPeerResetsAll},
	{"names of the kernel's socket", rowSocketNames},
	{"add streams", rowAddStreams},
	{"peer adds streams", rowPeerAddsStreams},
}

func runRows(t *testing.T, s *stack, rows []row) {
	t.Logf("peer: %s", s.version)
	for _, r := range rows {
		s.row(t, r.name, func(t *testing.T) {
			o := setup{stack: s, mode: "sink", opts: peerDefaults(s)}
			s.row(t, "we connect", func(t *testing.T) { r.run(t, o) })
			o.accept = true
			s.row(t, "peer connects", func(t *testing.T) { r.run(t, o) })
		})
	}
	s.row(t, "refused", func(t *testing.T) { refusedByPeer(t, setup{stack: s}) })
	s.row(t, "we refuse", func(t *testing.T) { refusedByUs(t, setup{stack: s}) })
	s.row(t, "collision", func(t *testing.T) { collision(t, setup{stack: s, mode: "echo", opts: peerDefaults(s)}) })
}

// row runs f as a subtest. When that fails, t ends unless another peer still starts: in a guest
// that stands still each of the rows that follow would wait for its limit.
func (s *stack) row(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	if !t.Run(name, f) {
		s.start(t, nil).quit()
	}
}

// peerDefaults are options of a peer that make it quick rather than frugal.
func peerDefaults(s *stack) []string {
	return []string{"nodelay 1", "buffer 4194304 4194304", "streams 300 300", "rto 500 200 2000"}
}

var streams300 = sctp.Config{OutStreams: 300}

func rowEcho(t *testing.T, o setup) {
	o.mode, o.cfg = "echo", streams300
	s := o.open(t)
	buf := make([]byte, 1<<20)
	for i, size := range []int{1, 2, 3, 4, 5, 999, 1000, 1400, 1450, 1451, 1452, 1453, 1454, 1455, 1456, 1500, 2904, 9000, 65535, 65536, 300_000} {
		msg := make([]byte, size)
		copy(msg, bytes.Repeat(pattern, size/len(pattern)+1))
		opts := sctp.SendOptions{Stream: uint16(i % 300), PPID: uint32(i) << 24, Unordered: i%3 == 2, Immediate: i%4 == 1}
		if err := s.a.Send(s.ctx, msg, opts); err != nil {
			t.Fatal(err)
		}
		n, info, err := s.a.Recv(s.ctx, buf)
		for err == nil && !info.EOR {
			var k int
			k, info, err = s.a.Recv(s.ctx, buf[n:])
			n += k
		}
		if err != nil || !bytes.Equal(buf[:n], msg) || info.Stream != opts.Stream || info.PPID != opts.PPID || info.Unordered != opts.Unordered {
			t.Errorf("size %d: %d bytes back, %+v, %v", size, n, info, err)
		}
	}
	s.shutdown()
}

// bulk is a transfer of the size that suits the stack.
func (o *setup) bulk(size int) traffic { return traffic{count: o.stack.bulk / size, size: size} }

func rowBulkOut(t *testing.T, o setup) {
	s := o.open(t)
	tr := o.bulk(60_000)
	start := time.Now()
	s.send(tr)
	s.peer.await(sessionTime, tr.count)
	t.Logf("%.0f MB/s, %+v", float64(tr.bytes())/1e6/time.Since(start).Seconds(), briefly(s.a.Stats()))
	s.shutdown()
}

func rowBulkIn(t *testing.T, o setup) {
	s := o.open(t)
	tr := o.bulk(60_000)
	start := time.Now()
	s.peerSends(tr)
	got := s.receive(tr.count)
	if got.gaps != 0 || got.bytes != tr.bytes() {
		t.Errorf("received %+v", got)
	}
	t.Logf("%.0f MB/s", float64(tr.bytes())/1e6/time.Since(start).Seconds())
	s.shutdown()
}

func rowBulkBoth(t *testing.T, o setup) {
	s := o.open(t)
	tr := o.bulk(20_000)
	tr.count /= 2
	s.peerSends(tr)
	failed := make(chan error, 1)
	go func() { failed <- s.trySend(tr) }()
	if got := s.receive(tr.count); got.gaps != 0 || got.bytes != tr.bytes() {
		t.Errorf("received %+v", got)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	s.peer.await(sessionTime, tr.count)
	s.shutdown()
}

func rowStreams(t *testing.T, o setup) {
	o.cfg = streams300
	s := o.open(t)
	if out, in := s.a.Streams(); out != 300 || in != 300 {
		t.Errorf("%d outgoing and %d incoming streams, want 300 each", out, in)
	}
	tr := traffic{count: 3000, size: 500, streams: 300}
	s.send(tr)
	s.peer.await(sessionTime, tr.count)
	s.peerSends(tr)
	if got := s.receive(tr.count); got.gaps != 0 {
		t.Errorf("received %+v", got)
	}
	s.shutdown()
}

func rowUnordered(t *testing.T, o setup) {
	s := o.open(t)
	tr := traffic{count: 2000, size: 2500, opts: sctp.SendOptions{Unordered: true}, peerOpts: "unordered"}
	s.send(tr)
	if got := s.peer.await(sessionTime, tr.count); got.unordered != int64(tr.count) {
		t.Errorf("peer got %+v", got)
	}
	s.peerSends(tr)
	if got := s.receive(tr.count); got.unordered != tr.count {
		t.Errorf("received %+v", got)
	}
	s.shutdown()
}

func rowBig(t *testing.T, o setup) {
	sizes := []int{1 << 20, 4 << 20, 16 << 20}
	if o.stack.kernel {
		sizes = sizes[2:] // the guest is slow
	}
	o.opts = append(o.opts, "buffer 33554432 33554432")
	s := o.open(t)
	for i, size := range sizes {
		tr := traffic{count: 1, size: size, opts: sctp.SendOptions{Stream: uint16(i)}, peerOpts: fmt.Sprintf("first=%d", i)}
		s.send(tr)
		s.peer.await(sessionTime, i+1)
		s.peerSends(tr)
		s.receive(1)
	}
	s.shutdown()
}

// rowSlowReader fills our receive window, and lets it open step by step.
func rowSlowReader(t *testing.T, o setup) {
	o.cfg.RecvBuffer = 100_000
	s := o.open(t)
	tr := traffic{count: 500, size: 2000}
	s.peerSends(tr)
	s.until("the window does not fill", func() bool { return s.a.Stats().Readable >= 80_000 })
	time.Sleep(700 * time.Millisecond) // the peer probes the closed window
	if got := s.receive(tr.count); got.gaps != 0 {
		t.Errorf("received %+v", got)
	}
	s.shutdown()
}

func rowLoss(f faults) func(*testing.T, setup) {
	return func(t *testing.T, o setup) {
		o.relay = newRelay(t, f)
		o.cfg.MTU = 1500
		s := o.open(t)
		tr := o.bulk(10_000)
		tr.count /= 10
		tr.streams = 5
		start := time.Now()
		s.send(tr)
		s.peer.await(sessionTime, tr.count)
		out := time.Since(start)
		t.Logf("out %.1f MB/s, %+v", float64(tr.bytes())/1e6/out.Seconds(), briefly(s.a.Stats()))
		start = time.Now()
		s.peerSends(tr)
		if got := s.receive(tr.count); got.gaps != 0 {
			t.Errorf("received %+v", got)
		}
		t.Logf("in %.1f MB/s", float64(tr.bytes())/1e6/time.Since(start).Seconds())
		s.shutdown()
	}
}

// briefly returns the counters of a sender.
func briefly(st sctp.Stats) string {
	return fmt.Sprintf("%d chunks, %d retransmitted, %d of them fast, %d spurious, %d timeouts",
		st.ChunksSent, st.Retransmits, st.FastRetransmits, st.SpuriousRetransmits, st.Timeouts)
}

func rowWeAbort(t *testing.T, o setup) {
	s := o.open(t)
	s.peerSends(traffic{count: 100_000, size: 1000})
	s.receive(100)
	s.a.Abort("enough")
	for {
		// A peer in the middle of sending complains of it.
		if line := s.peer.want("e"); strings.HasPrefix(line, "nd") {
			break
		}
	}
	var abort *sctp.AbortError
	if err := s.wantEnd(patience); !errors.As(err, &abort) || abort.ByPeer {
		t.Errorf("the association ended with %v", err)
	}
}

func rowPeerAborts(t *testing.T, o setup) {
	s := o.open(t)
	s.send(traffic{count: 10, size: 1000})
	s.peer.await(patience, 10)
	s.peer.ok("abort out of here")
	reason := "out of here"
	if o.stack.kernel {
		reason = ""
	}
	var abort *sctp.AbortError
	if err := s.wantEnd(patience); !errors.As(err, &abort) || !abort.ByPeer || abort.Cause != uint16(wire.CauseUserAbort) || abort.Reason != reason {
		t.Errorf("the association ended with %v", err)
	}
}

// rowWeShutDown checks that what was sent before arrives.
func rowWeShutDown(t *testing.T, o setup) {
	s := o.open(t)
	tr := traffic{count: 200, size: 10_000}
	s.peer.do("await %d", tr.count)
	s.send(tr)
	if err := s.a.Shutdown(s.ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.peer.counts(s.peer.want("got")); got.msgs != int64(tr.count) || got.bad != 0 {
		t.Errorf("peer got %+v", got)
	}
	s.peer.want("end")
}

func rowPeerShutsDown(t *testing.T, o setup) {
	s := o.open(t)
	tr := traffic{count: 200, size: 10_000}
	s.peerSends(tr)
	s.peer.want("sent")
	s.peer.ok("shutdown")
	if got := s.receive(tr.count); got.gaps != 0 {
		t.Errorf("received %+v", got)
	}
	s.wantEOF()
	if err := s.wantEnd(patience); err != nil {
		t.Errorf("the association ended with %v", err)
	}
	s.peer.want("end")
}

// rowBothShutDown has the SHUTDOWN chunks cross.
func rowBothShutDown(t *testing.T, o setup) {
	s := o.open(t)
	s.peer.do("shutdown")
	if err := s.a.Shutdown(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.peer.want("end")
}

func rowAdaptation(t *testing.T, o setup) {
	ours := uint32(1)
	o.cfg.Adaptation = &ours
	o.opts = append(o.opts, "adaptation 77")
	s := o.open(t)
	if theirs, ok := s.a.PeerAdaptation(); !ok || theirs != 77 {
		t.Errorf("adaptation indication of the peer %d, %v; want 77", theirs, ok)
	}
	if got := s.peer.want("adaptation"); got != "1" {
		t.Errorf("the peer sees our adaptation indication as %s, want 1", got)
	}
	s.shutdown()
}

// rowInterleaving mixes large messages with small ones on other streams. The
// Linux kernel numbers the second fragment of a message 0 and expects it so,
// where RFC 8260, Section 2.1, has the first one "implicitly considered to be
// 0": with it only messages of one fragment can be interleaved.
func rowInterleaving(t *testing.T, o setup) {
	o.opts = append(o.opts, "idata 1")
	o.cfg = sctp.Config{OutStreams: 300, Scheduler: sctp.RoundRobin}
	large, unordered := 400_000, 9000
	if o.stack.kernel {
		large, unordered = 1400, 1300
	}
	s := o.open(t)
	for _, tr := range []traffic{
		{count: 6, size: large, streams: 3},
		{count: 1000, size: 700, streams: 10, opts: sctp.SendOptions{Stream: 100}, peerOpts: "first=100"},
		{count: 300, size: unordered, streams: 10, opts: sctp.SendOptions{Stream: 200, Unordered: true}, peerOpts: "first=200 unordered"},
	} {
		s.send(tr)
		s.peerSends(tr)
	}
	s.peer.await(sessionTime, 1306)
	got := s.receive(1306)
	if got.gaps != 0 || got.unordered != 300 {
		t.Errorf("received %d messages, %d unordered, %d gaps", got.msgs, got.unordered, got.gaps)
	}
	s.wantChunks(wire.ChunkIData, true)
	s.wantChunks(wire.ChunkData, false)
	s.shutdown()
}

func rowNoInterleaving(t *testing.T, o setup) {
	o.opts = append(o.opts, "idata 1")
	o.cfg.NoInterleaving = true
	s := o.open(t)
	tr := traffic{count: 100, size: 5000, streams: 5}
	s.send(tr)
	s.peer.await(patience, tr.count)
	s.peerSends(tr)
	s.receive(tr.count)
	s.wantChunks(wire.ChunkIData, false)
	s.wantChunks(wire.ChunkData, true)
	s.shutdown()
}
