package mpi

import "testing"

// TestPrimaryAddr looks for addresses with launchers that are here, and that
// there are not.
func TestPrimaryAddr(t *testing.T) {
	if a := addrTo("127.0.0.1"); !a.IsLoopback() {
		t.Errorf("the loopback interface is reached from %v", a)
	}
	if a := addrTo("no such host.invalid"); a.IsValid() {
		t.Errorf("a host that is not there is reached from %v", a)
	}
	want := primaryAddr("")
	for _, port := range []string{"127.0.0.1:1", "nonsense", "no.such.host.invalid:1"} {
		if got := primaryAddr(port); got != want {
			t.Errorf("launcher %q: %v, want %v", port, got, want)
		}
	}
}
