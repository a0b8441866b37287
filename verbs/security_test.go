package verbs

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/rdmap"
)

// TestOutOfBoundsOverLoopback writes one byte too many, and does other things
// it has no right to, over real sockets. Each ends its own queue pair with the
// right Terminate, and nothing is written.
func TestOutOfBoundsOverLoopback(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	outOfBounds(t, a, b, func(t *testing.T) (qa, qb *QP) { return connect(t, a, b, QPConfig{}, QPConfig{}) })
}

// outOfBounds is the test for a way to connect.
func outOfBounds(t *testing.T, a, b *node, connect func(t *testing.T) (qa, qb *QP)) {
	const size, guard = 5000, 100
	mem := make([]byte, guard+size+guard)
	fillPattern(mem, 0x5A)
	inner := mem[guard : guard+size : guard+size]
	reg := func(pd *PD, acc Access) *MR {
		mr, err := pd.Register(inner, acc)
		if err != nil {
			t.Fatal(err)
		}
		return mr
	}
	full, ro, wo := reg(b.pd, RemoteRead|RemoteWrite|RemoteAtomic), reg(b.pd, RemoteRead), reg(b.pd, RemoteWrite)
	foreign := reg(b.dev.AllocPD(), RemoteRead|RemoteWrite)
	src := a.mr(size+1, LocalWrite)

	bystander, peer := connect(t)
	tests := []struct {
		name string
		wr   SendWR
		want ddp.Fault
	}{
		{"write one byte too long", SendWR{Op: OpWrite, SGL: []SGE{src.Slice(0, size+1)}, Remote: full.Remote()}, ddp.FaultBounds},
		{"write one byte past", SendWR{Op: OpWrite, SGL: []SGE{src.Slice(0, 1)}, Remote: full.Remote().At(size)}, ddp.FaultBounds},
		{"write that wraps", SendWR{Op: OpWrite, SGL: []SGE{src.Slice(0, 8)}, Remote: RemoteBuf{STag: full.STag(), TO: 1<<64 - 4}}, ddp.FaultWrap},
		{"write read-only", SendWR{Op: OpWrite, SGL: []SGE{src.Slice(0, 8)}, Remote: ro.Remote()}, ddp.FaultSTag},
		{"write other domain", SendWR{Op: OpWrite, SGL: []SGE{src.Slice(0, 8)}, Remote: foreign.Remote()}, ddp.FaultNotAssociated},
		{"write guessed STag", SendWR{Op: OpWrite, SGL: []SGE{src.Slice(0, 8)}, Remote: RemoteBuf{STag: full.STag() ^ 1}}, ddp.FaultSTag},
		{"read one byte past", SendWR{Op: OpRead, SGL: []SGE{src.Slice(0, 2)}, Remote: full.Remote().At(size - 1)}, rdmap.FaultBounds},
		{"read write-only", SendWR{Op: OpRead, SGL: []SGE{src.Slice(0, 2)}, Remote: wo.Remote()}, rdmap.FaultAccess},
		{"read other domain", SendWR{Op: OpRead, SGL: []SGE{src.Slice(0, 2)}, Remote: foreign.Remote()}, rdmap.FaultNotAssociated},
		{"atomic without right", SendWR{Op: OpFetchAdd, SGL: []SGE{src.Slice(0, 8)}, Remote: wo.Remote()}, rdmap.FaultAccess},
		{"invalidate shared region", SendWR{Op: OpSendInvalidate, Invalidate: full.STag()}, rdmap.FaultCannotInval},
		{"send without receive", SendWR{Op: OpSend, Inline: []byte("x")}, ddp.FaultNoBuffer},
	}
	before := bytes.Clone(mem)
	for _, tt := range tests {
		func() {
			t.Log(tt.name)
			qa, qb := connect(t)
			if tt.wr.Op == OpSendInvalidate {
				if err := qb.PostRecv(RecvWR{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := qa.PostSend(tt.wr); err != nil {
				t.Fatal(err)
			}
			wantDone(t, qa, tt.want)
			wantDone(t, qb, tt.want)
			var te *TerminateError
			if !errors.As(qa.Err(), &te) || !te.ByPeer || te.Header.Fault != tt.want || !te.Header.HasDDP {
				t.Errorf("requester: %v", qa.Err())
			}
			if !errors.As(qb.Err(), &te) || te.ByPeer {
				t.Errorf("responder: %v", qb.Err())
			}
			if tt.wr.Op == OpWrite && te.Header.DDP.STag != tt.wr.Remote.STag {
				t.Errorf("Terminate is about STag %#x, want %#x", te.Header.DDP.STag, tt.wr.Remote.STag)
			}
			if tt.name == "write one byte too long" {
				// All but the last segment were within bounds.
				te := te.Header
				if int(te.DDP.TO)+int(te.SegmentLength)-ddp.TaggedHeaderLen != size+1 || !te.DDP.Last {
					t.Errorf("Terminate is about %+v of %d octets", te.DDP, te.SegmentLength)
				}
				if !bytes.Equal(mem[:guard], before[:guard]) || !bytes.Equal(mem[guard+size:], before[guard+size:]) {
					t.Error("memory outside the region changed")
				}
				copy(mem, before)
			}
			if !bytes.Equal(mem, before) {
				t.Error("memory changed")
			}
		}()
	}
	// The other queue pair of the association is as it was.
	if bystander.State() != StateRTS || peer.State() != StateRTS {
		t.Fatalf("bystander: %v, %v", bystander.State(), bystander.Err())
	}
	for a.cq.Len() > 0 {
		a.cq.Poll(make([]WC, 16))
	}
	// Posting a receive orders the reads of mem above before what its peer
	// writes from now on, in the eyes of the race detector.
	if err := peer.PostRecv(RecvWR{}); err != nil {
		t.Fatal(err)
	}
	if err := bystander.PostSend(SendWR{ID: 5, Op: OpWrite, Flags: Signaled, SGL: []SGE{src.Slice(0, size)}, Remote: full.Remote()}); err != nil {
		t.Fatal(err)
	}
	want(t, a.cq, 5, StatusSuccess)
}

func TestPostChecks(t *testing.T) {
	n := newNode(t, Config{})
	a, b := n, newNode(t, Config{})
	qa, qb := connect(t, a, b, QPConfig{SendDepth: 2, RecvDepth: 2, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInline: 8, ORD: -1}, QPConfig{})
	mr := a.mr(100, LocalWrite)
	ro := a.mr(100, 0)
	other, _ := a.dev.AllocPD().Register(make([]byte, 100), LocalWrite)
	closed := a.mr(100, LocalWrite)
	closed.Close()
	target := b.mr(100, RemoteWrite).Remote()
	one := []SGE{mr.Slice(0, 1)}
	for _, tt := range []struct {
		name string
		wr   SendWR
		want error
	}{
		{"no operation", SendWR{}, ErrWorkRequest},
		{"undefined operation", SendWR{Op: 99}, ErrWorkRequest},
		{"inline too long", SendWR{Op: OpSend, Inline: make([]byte, 9)}, ErrWorkRequest},
		{"inline and list", SendWR{Op: OpSend, Inline: []byte{1}, SGL: one}, ErrWorkRequest},
		{"read without depth", SendWR{Op: OpRead, SGL: one}, ErrWorkRequest},
		{"immediate with data", SendWR{Op: OpImm, SGL: one}, ErrWorkRequest},
		{"list too long", SendWR{Op: OpSend, SGL: []SGE{mr.Slice(0, 1), mr.Slice(0, 1), mr.Slice(0, 1)}}, ErrSGL},
		{"past the end", SendWR{Op: OpSend, SGL: []SGE{mr.Slice(90, 11)}}, ErrSGL},
		{"negative offset", SendWR{Op: OpSend, SGL: []SGE{mr.Slice(-1, 1)}}, ErrSGL},
		{"negative length", SendWR{Op: OpSend, SGL: []SGE{mr.Slice(1, -1)}}, ErrSGL},
		{"overflow", SendWR{Op: OpSend, SGL: []SGE{mr.Slice(10, math.MaxInt)}}, ErrSGL},
		{"no region", SendWR{Op: OpSend, SGL: []SGE{{}}}, ErrSGL},
		{"other domain", SendWR{Op: OpSend, SGL: []SGE{other.Slice(0, 1)}}, ErrSGL},
		{"closed region", SendWR{Op: OpSend, SGL: []SGE{closed.Slice(0, 1)}}, ErrSGL},
	} {
		// A good request before it is not posted either, and holds nothing.
		if err := qa.PostSend(SendWR{Op: OpWrite, SGL: one, Remote: target}, tt.wr); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := qa.PostSend(make([]SendWR, 0)...); err != nil {
		t.Errorf("nothing: %v", err)
	}
	imm := SendWR{Op: OpImm}
	if err := qa.PostSend(imm, imm, imm); !errors.Is(err, ErrQueueFull) {
		t.Errorf("three requests in a queue of two: %v", err)
	}
	for name, wr := range map[string]RecvWR{"read-only": {SGL: []SGE{ro.Slice(0, 1)}},
		"too long": {SGL: []SGE{mr.Slice(0, 1), mr.Slice(0, 1), mr.Slice(0, 1)}}} {
		if err := qa.PostRecv(RecvWR{SGL: one}, wr); !errors.Is(err, ErrSGL) {
			t.Errorf("receive %s: %v", name, err)
		}
	}
	if err := qa.PostRecv(RecvWR{}, RecvWR{}, RecvWR{}); !errors.Is(err, ErrQueueFull) {
		t.Errorf("three receives in a queue of two: %v", err)
	}
	if err := mr.Close(); err != nil {
		t.Errorf("refused requests hold the region: %v", err)
	}
	// Reads into memory without LocalWrite, where there is a depth.
	bro := b.mr(8, 0)
	if err := qb.PostSend(SendWR{Op: OpRead, SGL: []SGE{bro.Slice(0, 8)}}); !errors.Is(err, ErrWorkRequest) && !errors.Is(err, ErrSGL) {
		t.Errorf("read into read-only memory: %v", err)
	}
}
