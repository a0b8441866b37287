package verbs

import (
	"bytes"
	"testing"
)

func TestWriteReadSendOverLoopback(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	qa, qb := connect(t, a, b, QPConfig{}, QPConfig{})
	src := a.mr(1<<20, LocalWrite)
	dst := b.mr(1<<20, RemoteWrite|RemoteRead)
	fillPattern(src.Bytes(), 1)
	msg := b.mr(64, LocalWrite)
	if err := qb.PostRecv(RecvWR{ID: 9, SGL: []SGE{msg.Slice(0, 64)}}); err != nil {
		t.Fatal(err)
	}
	if err := qa.PostSend(
		SendWR{ID: 1, Op: OpWrite, Flags: Signaled, SGL: []SGE{src.Slice(0, 1<<20)}, Remote: dst.Remote()},
		SendWR{ID: 2, Op: OpSend, Flags: Signaled, Inline: []byte("written")},
	); err != nil {
		t.Fatal(err)
	}
	if wc := want(t, b.rcq, 9, StatusSuccess); wc.Len != 7 || string(msg.Bytes()[:7]) != "written" || wc.QP != qb {
		t.Errorf("receive completion %+v, %q", wc, msg.Bytes()[:7])
	}
	// RFC 5040, Section 5.5, rule 10.
	if !bytes.Equal(src.Bytes(), dst.Bytes()) {
		t.Error("the write had not been placed when the send was delivered")
	}
	want(t, a.cq, 1, StatusSuccess)
	want(t, a.cq, 2, StatusSuccess)
	back := a.mr(1<<20, LocalWrite)
	if err := qa.PostSend(SendWR{ID: 3, Op: OpRead, Flags: Signaled, SGL: []SGE{back.Slice(0, 1<<19), back.Slice(1<<19, 1<<19)}, Remote: dst.Remote()}); err != nil {
		t.Fatal(err)
	}
	want(t, a.cq, 3, StatusSuccess)
	if !bytes.Equal(back.Bytes(), dst.Bytes()) {
		t.Error("read differs")
	}
	if err := qa.Disconnect(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantDone(t, qa, ErrDisconnected)
	wantDone(t, qb, ErrDisconnected)
}
