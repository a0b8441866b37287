package verbs

import (
	"bytes"
	"testing"
)

func TestWriteReadSendOverLoopback(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	qa, qb := connect(t, a, b, QPConfig{}, QPConfig{})
	writeReadSend(t, a, b, qa, qb, 1<<20)
}

// writeReadSend writes size bytes, tells the peer by a message, and reads them
// back; then the peer reads, and the connection ends.
func writeReadSend(t *testing.T, a, b *node, qa, qb *QP, size int) {
	t.Helper()
	src, back := a.mr(size, LocalWrite), a.mr(size, LocalWrite)
	dst := b.mr(size, RemoteWrite|RemoteRead|RemoteAtomic)
	fillPattern(src.Bytes(), 1)
	msg := b.mr(64, LocalWrite)
	if err := qb.PostRecv(RecvWR{ID: 9, SGL: []SGE{msg.Slice(0, 64)}}); err != nil {
		t.Fatal(err)
	}
	if err := qa.PostSend(
		SendWR{ID: 1, Op: OpWrite, Flags: Signaled, SGL: []SGE{src.Slice(0, size)}, Remote: dst.Remote()},
		SendWR{ID: 2, Op: OpSend, Flags: Signaled, Inline: []byte("written")},
		SendWR{ID: 3, Op: OpRead, Flags: Signaled, SGL: []SGE{back.Slice(0, 1<<19), back.Slice(1<<19, size-1<<19)}, Remote: dst.Remote()},
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
	for id := range uint64(3) {
		want(t, a.cq, id+1, StatusSuccess)
	}
	if !bytes.Equal(back.Bytes(), src.Bytes()) {
		t.Error("read differs")
	}
	if err := qb.PostSend(SendWR{ID: 4, Op: OpRead, Flags: Signaled, SGL: []SGE{msg.Slice(0, 8)},
		Remote: a.mr(8, RemoteRead).Remote()}); err != nil {
		t.Fatal(err)
	}
	want(t, b.cq, 4, StatusSuccess)
	if err := qa.Disconnect(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantDone(t, qa, ErrDisconnected)
	wantDone(t, qb, ErrDisconnected)
}
