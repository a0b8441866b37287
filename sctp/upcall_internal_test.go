package sctp

import (
	"net/netip"
	"runtime"
	"testing"
)

// goCallbacks, which leaves the owners of acknowledged messages to another goroutine, does
// not allocate.
func TestGoCallbacksDoesNotAllocate(t *testing.T) {
	tr, err := NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	e, err := tr.Listen(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.Connect(t.Context(), e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		a.goCallbacks(deferredEvents)
		for a.callbacks.Load() != 0 {
			runtime.Gosched()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
