package relay_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// A burst of more than a leg takes at once begins at once: the last frame that fits into the
// association is not held back for those that do not.
func TestBurstBeginsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		a, b := w.Node(1, 1, nil), w.Node(2, 1, nil)
		defer a.Close()
		defer b.Close()
		s, err := a.Sender(address(2, 1), 0)
		wantNil(t, err)
		wantNil(t, s.TrySend(pattern(1000, 1), relay.SendOptions{}))
		r, err := b.Next(t.Context())
		wantNil(t, err)
		recv(t, r, t.Context())
		wantNil(t, s.Flush(t.Context()))
		time.Sleep(3 * time.Second)
		began := time.Now()
		wantNil(t, s.TrySend(pattern(1<<20, 2), relay.SendOptions{}))
		recv(t, r, t.Context())
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("1 MiB takes %v", took)
		}
		wantNil(t, s.Flush(t.Context()))
	})
}
