package sctp_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// A reader of one stream that waits gets what comes on it although reads of any stream would
// find nothing: because the stream is held back from those, or because they are in the middle
// of a message whose rest was lost.
func TestWaitsForOneStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, nil, nil)
		p.b.PauseStream(5, true)
		got := make(chan error, 1)
		go func() {
			_, _, err := p.b.RecvStream(t.Context(), 5, make([]byte, 100))
			got <- err
		}()
		synctest.Wait()
		if err := p.a.Send(t.Context(), []byte("held back"), sctp.SendOptions{Stream: 5}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		select {
		case err := <-got:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the reader of the stream still waits")
			p.a.Abort("done")
			<-got
		}
	})
}
