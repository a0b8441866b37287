package sctp_test

import (
	"testing"

	"github.com/weftstack/weft/sctp"
)

// A batch of datagrams must fit the socket whatever their size: 45 of 1,456
// bytes are more than the largest UDP payload and less than 64 KiB.
func TestBatchesOfAnySizeAreSent(t *testing.T) {
	p := newLoopbackPair(t, loopback(), &sctp.Config{MTU: 1500}, &sctp.Config{MTU: 1500})
	full := p.a.MaxPayload()
	buf, msg := make([]byte, full), make([]byte, full)
	for size := full - 24; size <= full; size++ {
		const count = 300
		errs := make(chan error, 1)
		go func() {
			for i := range count {
				if err := p.a.Send(t.Context(), msg[:size], sctp.SendOptions{Unordered: true, More: i < count-1}); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
		for range count {
			if _, _, err := p.b.Recv(t.Context(), buf); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if st := p.a.Endpoint().Transport().Stats(); st.WriteErrors != 0 {
		t.Errorf("%d of %d datagrams were refused", st.WriteErrors, st.DatagramsSent)
	}
}
