package rdmadev

import (
	"testing"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// TestRegistrationsAreBounded registers more buffers, and longer ones, than are kept.
func TestRegistrationsAreBounded(t *testing.T) {
	tr, err := sctp.NewTransport(sctp.TransportConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	dev, err := verbs.Open(verbs.Config{Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	pd := dev.AllocPD()
	var regs RegistrationCache
	const n = 100
	use := func(n int) {
		t.Helper()
		g, err := regs.Get(pd, make([]byte, n), 0)
		if err == nil {
			err = regs.Put(g)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range MaxKept + 40 {
		use(n)
	}
	if kept, bytes := regs.Kept(); kept != MaxKept || bytes != MaxKept*n {
		t.Errorf("%d registrations of %d bytes are kept", kept, bytes)
	}
	// A long one pushes others out, one that is too long is not kept.
	use(maxKeptBytes - 10*n)
	if kept, bytes := regs.Kept(); kept != 11 || bytes != maxKeptBytes {
		t.Errorf("%d registrations of %d bytes are kept after a long one", kept, bytes)
	}
	use(maxKeptBytes + 1)
	if kept, bytes := regs.Kept(); kept != 11 || bytes != maxKeptBytes {
		t.Errorf("%d registrations of %d bytes are kept after one that is too long", kept, bytes)
	}
	if err := regs.close(); err != nil {
		t.Error(err)
	}
	if err := pd.Close(); err != nil {
		t.Errorf("regions are left: %v", err)
	}
}
