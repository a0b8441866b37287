package sctp_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// outgoing makes n messages of the given size that say which they are; each has
// options.
func outgoing(n, size int, opts sctp.SendOptions) []sctp.Outgoing {
	batch := make([]sctp.Outgoing, n)
	for i := range batch {
		msg := make([]byte, size)
		copy(msg, fmt.Sprint(i))
		batch[i] = sctp.Outgoing{Msg: msg, SendOptions: opts}
	}
	return batch
}

func TestBatchesKeepOrderAndOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, nil, nil)
		batch := outgoing(40, 1000, sctp.SendOptions{})
		for i := range batch {
			batch[i].PPID = uint32(i)
			batch[i].Header = []byte{byte(i)}
		}
		if n, err := p.a.TrySendBatch(batch); n != len(batch) || err != nil {
			t.Fatalf("%d of %d messages were queued: %v", n, len(batch), err)
		}
		for i := range batch {
			clear(batch[i].Msg) // they were copied
		}
		buf := make([]byte, 2000)
		for i := range batch {
			got, info := recvMessage(t, p.b, buf)
			if want := fmt.Sprint(i); len(got) != 1001 || got[0] != byte(i) || string(got[1:1+len(want)]) != want || info.PPID != uint32(i) {
				t.Fatalf("message %d: %d bytes %q, %+v", i, len(got), got[:4], info)
			}
		}
		if n, err := p.a.TrySendBatch(nil); n != 0 || err != nil {
			t.Errorf("nothing: %d, %v", n, err)
		}
	})
}

// counted counts calls of Released.
type counted struct{ n int }

func (c *counted) Released(error) { c.n++ }

func TestBatchesEndAtTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{SendBuffer: 10000}, nil)
		owners := make([]counted, 5)
		batch := outgoing(5, 100, sctp.SendOptions{})
		for i := range batch {
			batch[i].Owner = &owners[i]
		}
		batch[3].Msg = nil
		if n, err := p.a.TrySendBatch(batch); n != 3 || err != sctp.ErrEmpty {
			t.Fatalf("%d messages were queued, %v; want 3, %v", n, err, sctp.ErrEmpty)
		}
		buf := make([]byte, 2000)
		for range 3 {
			recvMessage(t, p.b, buf) // nothing waits for more
		}
		p.net.Cut(addrA, addrB)
		n, err := p.a.TrySendBatch(outgoing(100, 1000, sctp.SendOptions{}))
		if n == 0 || n == 100 || err != sctp.ErrWouldBlock {
			t.Errorf("into a small buffer: %d, %v", n, err)
		}
		if n, err := p.a.TrySendBatch(outgoing(100, 1000, sctp.SendOptions{Force: true})); n != 100 || err != nil {
			t.Errorf("forced: %d, %v", n, err)
		}
		p.a.Abort("")
		synctest.Wait()
		if n, err := p.a.TrySendBatch(batch); n != 0 || err == nil {
			t.Errorf("on an association that has ended: %d, %v", n, err)
		}
		for i := range owners {
			if told := owners[i].n; told != 1 && i < 3 || told != 0 && i >= 3 {
				t.Errorf("owner %d was told %d times", i, told)
			}
		}
	})
}

func TestBatchesThatPromiseMoreWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 3, sctptest.Link{Delay: time.Millisecond}, nil, nil)
		synctest.Wait()
		before := p.a.Endpoint().Transport().Stats().DatagramsSent
		if n, err := p.a.TrySendBatch(outgoing(3, 10, sctp.SendOptions{More: true})); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		synctest.Wait()
		if sent := p.a.Endpoint().Transport().Stats().DatagramsSent; sent != before {
			t.Errorf("%d datagrams were sent, though more was to come", sent-before)
		}
		p.a.Flush()
		buf := make([]byte, 100)
		for range 3 {
			recvMessage(t, p.b, buf)
		}
		if sent := p.a.Endpoint().Transport().Stats().DatagramsSent; sent != before+1 {
			t.Errorf("%d datagrams were sent, want one", sent-before)
		}
	})
}
