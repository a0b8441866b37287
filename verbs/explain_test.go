package verbs

import (
	"errors"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// Errors say what was too much, how much it was and what the limit is, and are still those
// that callers branch on.
func TestErrorsSayWhichLimit(t *testing.T) {
	d := bare(t)
	cq, _ := d.NewCQ(8)
	pd, other := d.AllocPD(), d.AllocPD()
	qp, err := pd.NewQP(QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 2, RecvDepth: 1, ORD: -1})
	if err != nil {
		t.Fatal(err)
	}
	mr, _ := pd.Register(make([]byte, 64), LocalWrite)
	ro, _ := pd.Register(make([]byte, 64), 0)
	strange, _ := other.Register(make([]byte, 64), LocalWrite)
	srq, _ := pd.NewSRQ(SRQConfig{Depth: 1})
	newQP := func(c QPConfig) error {
		c.SendCQ, c.RecvCQ = cq, cq
		_, err := pd.NewQP(c)
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	second := func(_ any, err error) error { return err }
	five := make([]SGE, 5)
	must(qp.PostRecv(RecvWR{}))
	must(srq.PostRecv(RecvWR{}))
	tests := []struct {
		err, is error
		text    string
	}{
		{newQP(QPConfig{SendDepth: 70000}), ErrLimit, "verbs: SendDepth 70000: at most 32768"},
		{newQP(QPConfig{SendDepth: -1}), ErrLimit, "verbs: SendDepth -1: at least 1"},
		{newQP(QPConfig{RecvDepth: 70000}), ErrLimit, "verbs: RecvDepth 70000: at most 32768"},
		{newQP(QPConfig{MaxSendSGE: 65}), ErrLimit, "verbs: MaxSendSGE 65: at most 64"},
		{newQP(QPConfig{MaxInline: 2000}), ErrLimit, "verbs: MaxInline 2000: at most 1024"},
		{newQP(QPConfig{IRD: 2000}), ErrLimit, "verbs: IRD 2000: at most 1024"},
		{second(d.NewCQ(0)), ErrLimit, "verbs: CQ depth 0: at least 1"},
		{second(d.NewCQ(MaxCQ + 1)), ErrLimit, "verbs: CQ depth 4194305: at most 4194304"},
		{cq.Resize(-1), ErrLimit, "verbs: CQ depth -1: at least 1"},
		{second(pd.NewSRQ(SRQConfig{Depth: MaxSRQDepth + 1})), ErrLimit, "verbs: SRQ depth 1048577: at most 1048576"},
		{second(pd.NewSRQ(SRQConfig{Depth: 4, Limit: 5})), ErrLimit, "verbs: SRQ limit 5: at most 4"},
		{srq.PostRecv(RecvWR{}), ErrQueueFull, "1 of 1"},
		{second(pd.AllocMR(-1)), ErrLimit, "verbs: size of a region -1: at least 0"},
		{second(pd.RegisterAt(make([]byte, 9), 1<<64-8, 0)), ErrLimit, "9 bytes at tagged offset 0xfffffffffffffff8"},
		{second(pd.Register(nil, 1<<7)), ErrAccess, "0x80"},
		{qp.Modify(QPAttr{ORD: 3}, AttrORD), ErrLimit, "verbs: ORD 3: at most 0"},
		{qp.PostRecv(RecvWR{}), ErrQueueFull, "work queue is full: RecvDepth 1"},
		{qp.PostRecv(RecvWR{SGL: five}), ErrSGL, "SGL of 5 elements: the most for a receive is 4"},
		{qp.PostRecv(RecvWR{SGL: []SGE{ro.Slice(0, 1)}}), ErrSGL, "element 0: its region has no LocalWrite"},
		{qp.PostSend(SendWR{Op: OpSend, SGL: five}), ErrSGL, "SGL of 5 elements: MaxSendSGE is 4"},
		{qp.PostSend(SendWR{Op: OpSend, SGL: []SGE{mr.Slice(0, 1), mr.Slice(60, 5)}}), ErrSGL, "element 1: 5 bytes at 60 of a region of 64"},
		{qp.PostSend(SendWR{Op: OpSend, SGL: []SGE{strange.Slice(0, 1)}}), ErrSGL, "another protection domain"},
		{qp.PostSend(SendWR{Op: OpSend, SGL: []SGE{{}}}), ErrSGL, "no region"},
		{qp.PostSend(SendWR{Op: OpSend, Inline: make([]byte, 65)}), ErrWorkRequest, "verbs: send of 65 bytes inline: MaxInline is 64"},
		{qp.PostSend(SendWR{Op: OpRead}), ErrWorkRequest, "read on QP 1, whose ORD is 0"},
		{qp.PostSend(SendWR{Op: 99}), ErrWorkRequest, "Op 99"},
		{qp.PostSend(SendWR{Op: OpSend}), ErrQPState, "verbs: QP 1: state IDLE does not allow this"},
		{second(d.Connect(t.Context(), d.Addr(), qp, ConnParams{PrivateData: make([]byte, 509)})), ErrPrivateData, "verbs: private data of 509 bytes: at most 508"},
		{pd.Close(), ErrBusy, "protection domain in use by 4 regions"},
		{cq.Close(), ErrBusy, "completion queue in use by 2 queue pairs"},
		{d.Close(), ErrBusy, "device in use by 3"},
	}
	for _, tt := range tests {
		if !errors.Is(tt.err, tt.is) || !strings.Contains(tt.err.Error(), tt.text) || !strings.HasPrefix(tt.err.Error(), "verbs: ") {
			t.Errorf("error = %q, want %q, which is %q", tt.err, tt.text, tt.is)
		}
	}
	// Of a queue pair that has ended the error says why.
	qp.Close()
	<-qp.Done()
	if err := qp.PostSend(SendWR{Op: OpSend}); !errors.Is(err, ErrQPState) || !strings.Contains(err.Error(), "state ERROR does not allow this: verbs: disconnected") {
		t.Errorf("error = %v", err)
	}
}

// A full queue is told without an allocation: programs post until it is.
func TestFullQueuesDoNotAllocate(t *testing.T) {
	d := bare(t)
	cq, _ := d.NewCQ(8)
	qa, _, _ := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1}, QPConfig{SendCQ: cq, RecvCQ: cq})
	sgl := make([]SGE, 0)
	n := testing.AllocsPerRun(100, func() {
		if err := qa.PostSend(SendWR{Op: OpImm}, SendWR{Op: OpImm}); !errors.Is(err, ErrQueueFull) {
			t.Errorf("PostSend: %v", err)
		}
		if err := qa.PostRecv(RecvWR{SGL: sgl}, RecvWR{SGL: sgl}); !errors.Is(err, ErrQueueFull) {
			t.Errorf("PostRecv: %v", err)
		}
	})
	if n > 0 && !testenv.Race {
		t.Errorf("%v allocations", n)
	}
}
