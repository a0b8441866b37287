package verbs

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weftstack/weft/ddp"
)

// TestInvalidationIsEffective has a peer write without a pause, over real
// sockets, while its rights are taken: after that nothing changes any more (RFC
// 5040, Section 8.1.1, item 6; RFC 5042, Section 6.2.2).
func TestInvalidationIsEffective(t *testing.T) {
	const size = 60000
	for _, how := range []string{"work request", "window", "fast region", "region", "close"} {
		t.Run(how, func(t *testing.T) {
			a, b := newNode(t, Config{}), newNode(t, Config{})
			qa, qb := connect(t, a, b, QPConfig{SendDepth: 64}, QPConfig{})
			dst := b.mr(size, LocalWrite|MWBind|RemoteWrite)
			stag, revoke := dst.STag(), func() {}
			post := func(wr SendWR) {
				t.Helper()
				wr.ID, wr.Flags = 1, Signaled
				if err := qb.PostSend(wr); err != nil {
					t.Fatal(err)
				}
				want(t, b.cq, 1, StatusSuccess)
			}
			switch how {
			case "work request", "window":
				mw, err := b.pd.AllocMW()
				if err != nil {
					t.Fatal(err)
				}
				post(SendWR{Op: OpBindMW, Bind: &Bind{MW: mw, MR: dst, Len: size, Access: RemoteWrite}})
				stag, revoke = mw.STag(), mw.Invalidate
				if how == "work request" {
					revoke = func() { post(SendWR{Op: OpLocalInvalidate, Invalidate: stag}) }
				}
			case "fast region":
				mr, err := b.pd.AllocMR(size)
				if err != nil {
					t.Fatal(err)
				}
				post(SendWR{Op: OpFastRegister, Bind: &Bind{MR: mr, Buf: dst.Bytes(), Access: RemoteWrite}})
				stag, revoke = mr.STag(), mr.Invalidate
			case "region":
				revoke = dst.Invalidate
			case "close":
				revoke = func() {
					if err := dst.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			// Each write has another content.
			src := a.mr(2*size, 0)
			fillPattern(src.Bytes(), 0)
			if err := qb.PostRecv(RecvWR{ID: 2}); err != nil {
				t.Fatal(err)
			}
			stopped := make(chan error, 1)
			go func() {
				for i := 0; ; i++ {
					op := OpWrite
					if i == 5 {
						op = OpWriteImm
					}
					err := qa.PostSend(SendWR{Op: op, SGL: []SGE{src.Slice(i*7%size, size)}, Remote: RemoteBuf{STag: stag}})
					if err != nil && !errors.Is(err, ErrQueueFull) {
						stopped <- err
						return
					}
					a.dev.Poll()
				}
			}()
			want(t, b.rcq, 2, StatusSuccess)
			revoke()
			dst.Sync()
			snapshot := bytes.Clone(dst.Bytes())
			wantDone(t, qb, ddp.FaultSTag)
			wantDone(t, qa, ddp.FaultSTag)
			if err := <-stopped; !errors.Is(err, ErrQPState) {
				t.Errorf("posting stopped with %v", err)
			}
			if !bytes.Equal(dst.Bytes(), snapshot) {
				t.Error("memory changed after its rights were taken")
			}
		})
	}
}
