package ddpsctp

import (
	"bytes"
	"testing"
)

func TestControlGolden(t *testing.T) {
	tests := []struct {
		name string
		c    Control
		wire []byte
	}{
		{"initiate", Control{Function: Initiate, Private: []byte("ab")}, []byte{0, 1, 'a', 'b'}},
		{"accept", Control{Function: Accept, Private: []byte{}}, []byte{0, 2}},
		{"reject", Control{Function: Reject, Private: []byte{7}}, []byte{0, 3, 7}},
		{"terminate", Control{Function: Terminate, Private: []byte{}}, []byte{0, 4}},
		// RFC 6581, Section 9: A B IRD(14) C D ORD(14).
		{"enhanced initiate", Control{Function: EnhancedInitiate, Enhanced: Enhanced{IRD: 0x1234, ORD: 0x3FFF}, Private: []byte{9}},
			[]byte{0, 5, 0x12, 0x34, 0x3F, 0xFF, 9}},
		{"enhanced accept", Control{Function: EnhancedAccept, Enhanced: Enhanced{PeerToPeer: true, RTRSend: true, RTRWrite: true, RTRRead: true, IRD: 1, ORD: 2}, Private: []byte{}},
			[]byte{0, 6, 0xC0, 1, 0xC0, 2}},
		{"enhanced reject", Control{Function: EnhancedReject, Private: []byte("no")}, []byte{0, 7, 'n', 'o'}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := AppendControl(nil, &tt.c); !bytes.Equal(got, tt.wire) {
				t.Errorf("encoded % x, want % x", got, tt.wire)
			}
			c, ok := ParseControl(tt.wire)
			if !ok || c.Function != tt.c.Function || c.Enhanced != tt.c.Enhanced || !bytes.Equal(c.Private, tt.c.Private) {
				t.Errorf("decoded %+v, %v", c, ok)
			}
		})
	}
	for name, b := range map[string][]byte{
		"empty": {}, "one octet": {0}, "function 0": {0, 0}, "function 8": {0, 8}, "experimental": {0xFF, 0xFF},
		"terminate with private data": {0, 4, 1}, "enhanced too short": {0, 5, 1, 2, 3},
		"private data over the limit": append([]byte{0, 1}, make([]byte, MaxPrivate+1)...),
	} {
		if c, ok := ParseControl(b); ok {
			t.Errorf("%s: accepted as %+v", name, c)
		}
	}
	// RFC 6581, Section 9.2: without A the others "MUST be ignored".
	if c, ok := ParseControl([]byte{0, 5, 0x40, 1, 0xC0, 2}); !ok || c.Enhanced != (Enhanced{IRD: 1, ORD: 2}) {
		t.Errorf("flags without A: %+v", c.Enhanced)
	}
}
