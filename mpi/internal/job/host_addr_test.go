package job

import "testing"

// TestHostAddr looks for addresses with launchers that are here, and that
// there are not.
func TestHostAddr(t *testing.T) {
	if a := addrTo("127.0.0.1"); !a.IsLoopback() {
		t.Errorf("the loopback interface is reached from %v", a)
	}
	if a := addrTo("no such host.invalid"); a.IsValid() {
		t.Errorf("a host that is not there is reached from %v", a)
	}
	want := hostAddr("")
	for _, port := range []string{"127.0.0.1:1", "nonsense", "no.such.host.invalid:1"} {
		if got := hostAddr(port); got != want {
			t.Errorf("launcher %q: %v, want %v", port, got, want)
		}
	}
}
