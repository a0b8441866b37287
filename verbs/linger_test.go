package verbs

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/sctptest"
)

// wantFreed closes a queue pair, and checks how long it takes until all of it is free:
// from least to most.
func wantFreed(t *testing.T, qp *QP, mr *MR, end func(), least, most time.Duration) {
	t.Helper()
	start := time.Now()
	end()
	<-qp.Done()
	if d := time.Since(start); d < least || d > most {
		t.Errorf("the end took %v, want %v to %v", d, least, most)
	}
	if err := mr.Close(); err != nil {
		t.Errorf("its region: %v", err)
	}
}

// postWrites has a queue pair write 1 MiB, and waits until a part of that is under way.
func postWrites(t *testing.T, qp *QP, mr, dst *MR) {
	t.Helper()
	if err := qp.PostSend(SendWR{ID: 1, Op: OpWrite, Flags: Signaled, SGL: []SGE{mr.Slice(0, mr.Len())}, Remote: dst.Remote()}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Millisecond)
	if qp.stream().Outstanding() == 0 {
		t.Fatal("nothing is under way")
	}
}

// On a dead network what was closed is free in seconds, whichever way it was closed: a
// queue pair whose writes are not acknowledged, its region, and the rest.
func TestCloseOnADeadNetwork(t *testing.T) {
	const size = 1 << 20
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, qp *QP)
	}{
		{"Close", func(t *testing.T, qp *QP) { qp.Close() }},
		{"Reset", func(t *testing.T, qp *QP) {
			if err := qp.Reset(t.Context()); err != nil {
				t.Error(err)
			}
			qp.Close()
		}},
		{"Modify", func(t *testing.T, qp *QP) { qp.Modify(QPAttr{State: StateError}, AttrState) }},
		{"terminated", func(t *testing.T, qp *QP) {
			qp.PostSend(SendWR{Op: OpLocalInvalidate, Invalidate: 0xBAD}) // ends it in an error
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *sctptest.Network, a, b *restartable) {
				qa, qb := connect(t, a.node, b.node, QPConfig{}, QPConfig{})
				src, dst := a.mr(size, 0), b.mr(size, RemoteWrite)
				postWrites(t, qa, src, dst)
				net.Cut("10.0.0.1", "10.0.0.2")
				wantFreed(t, qa, src, func() { tt.end(t, qa) }, 0, 2*DefaultCloseTimeout)
				qa.Close()
				qb.Close()
				<-qb.Done()
				a.cq.Close()
				a.rcq.Close()
				if err := a.pd.Close(); err != nil {
					t.Errorf("protection domain: %v", err)
				}
				if err := a.dev.Close(); err != nil {
					t.Errorf("device: %v", err)
				}
			})
		})
	}
}

// A queue pair that is in use keeps the association: what was closed beside it waits.
// When that ends, too, or the association is aborted, all is free.
func TestCloseLeavesOtherQueuePairsAlone(t *testing.T) {
	const size = 1 << 20
	for _, force := range []bool{false, true} {
		inBubble(t, func(t *testing.T, net *sctptest.Network, a, b *restartable) {
			qa, _ := connect(t, a.node, b.node, QPConfig{}, QPConfig{})
			other, _ := connect(t, a.node, b.node, QPConfig{}, QPConfig{})
			src, dst := a.mr(size, 0), b.mr(size, RemoteWrite)
			postWrites(t, qa, src, dst)
			net.Cut("10.0.0.1", "10.0.0.2")
			wantFreed(t, qa, src, func() {
				qa.Close()
				time.Sleep(4 * DefaultCloseTimeout)
				if st := other.State(); st != StateRTS {
					t.Fatalf("the other queue pair is in state %v: %v", st, other.Err())
				}
				if err := src.Close(); err == nil {
					t.Error("the region is not busy any more")
				}
				if !force {
					other.Close()
					return
				}
				for _, s := range a.dev.Associations() {
					s.Abort("dead network")
				}
			}, 4*DefaultCloseTimeout, 6*DefaultCloseTimeout)
			if force {
				<-other.Done()
			}
		})
	}
}

// A network that is slow is not dead: as long as something is acknowledged the
// association goes on, and the peer sees the end that was meant.
func TestCloseOnASlowNetwork(t *testing.T) {
	inBubble(t, func(t *testing.T, net *sctptest.Network, a, b *restartable) {
		net.SetDefault(sctptest.Link{Delay: time.Millisecond, Rate: 800_000}) // 100 kB/s
		qa, qb := connect(t, a.node, b.node, QPConfig{}, QPConfig{})
		const size = 4 << 20
		src, dst := a.mr(size, 0), b.mr(size, RemoteWrite)
		postWrites(t, qa, src, dst)
		start := time.Now()
		qa.Close()
		wantDone(t, qb, ErrDisconnected)
		<-qa.Done()
		if d := time.Since(start); d < 2*DefaultCloseTimeout {
			t.Errorf("the end took %v: the network is not slow", d)
		}
	})
}
