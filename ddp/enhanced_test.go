package ddp

import (
	"bytes"
	"testing"
)

// RFC 6581, Section 9.2: without control flag A the others "MUST also be set to
// 0", and are ignored.
func TestEnhancedFlagsNeedA(t *testing.T) {
	e := Enhanced{RTRSend: true, RTRWrite: true, RTRRead: true, IRD: 1, ORD: 2}
	if b := AppendEnhanced(nil, e); !bytes.Equal(b, []byte{0, 1, 0, 2}) {
		t.Errorf("sent % x", b)
	}
	if got, ok := ParseEnhanced([]byte{0x40, 1, 0xC0, 2}); !ok || got != (Enhanced{IRD: 1, ORD: 2}) {
		t.Errorf("received %+v", got)
	}
	e.PeerToPeer = true
	if b := AppendEnhanced(nil, e); !bytes.Equal(b, []byte{0xC0, 1, 0xC0, 2}) {
		t.Errorf("with A: sent % x", b)
	}
}
