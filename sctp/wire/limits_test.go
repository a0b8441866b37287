package wire

import (
	"testing"
)

// oneChunk fails unless b is exactly one chunk with its padding, and returns it.
func oneChunk(t *testing.T, b []byte) Chunk {
	t.Helper()
	it := NewChunks(b)
	if !it.Next() || it.Err() != nil || len(it.Rest()) != 0 {
		t.Fatalf("%d bytes are not one chunk: %v, %d left", len(b), it.Err(), len(it.Rest()))
	}
	if len(b)%4 != 0 {
		t.Fatalf("%d bytes are not aligned", len(b))
	}
	return it.Chunk()
}

// TestMaxLength gives the encoders more than a 16-bit length can tell.
func TestMaxLength(t *testing.T) {
	big := make([]byte, MaxLength+9)
	for name, b := range map[string][]byte{
		"DATA":          AppendData(nil, Data{Payload: big}),
		"I-DATA":        AppendIData(nil, Data{Payload: big}),
		"HEARTBEAT":     AppendHeartbeat(nil, Heartbeat{big}),
		"HEARTBEAT ACK": AppendHeartbeatAck(nil, Heartbeat{big}),
		"COOKIE ECHO":   AppendCookieEcho(nil, CookieEcho{big}),
		"AUTH":          AppendAuth(nil, Auth{HMAC: big}),
		"unknown":       AppendChunk(nil, 0x7e, 0, big),
	} {
		if c := oneChunk(t, b); len(c.Raw) != MaxLength {
			t.Errorf("%s: length %d, want %d", name, len(c.Raw), MaxLength)
		}
	}
	hb, err := ParseHeartbeat(oneChunk(t, AppendHeartbeat(nil, Heartbeat{big})))
	if err != nil || len(hb.Info) != maxHeartbeatInfo {
		t.Errorf("HEARTBEAT: info of %d bytes, %v; want %d", len(hb.Info), err, maxHeartbeatInfo)
	}
	p, err := oneParam(AppendParam(nil, ParamRandom, big))
	if err != nil || len(p.Raw) != MaxLength {
		t.Errorf("parameter: length %d, %v; want %d", len(p.Raw), err, MaxLength)
	}
	causes := NewCauses(AppendUserAbort(nil, big))
	if !causes.Next() || len(causes.Cause().Raw) != MaxLength {
		t.Errorf("cause: length %d, want %d", len(causes.Cause().Raw), MaxLength)
	}
}

func TestMaxSackEntries(t *testing.T) {
	gaps, dups := make([]GapBlock, maxSackEntries+5), make([]uint32, maxSackEntries)
	for _, tt := range []struct {
		name                         string
		gaps, dups                   int
		wantGaps, wantDups, wantSize int
	}{
		{"all fit", maxSackEntries - 1, 1, maxSackEntries - 1, 1, MaxLength - 3},
		{"duplicates cut", maxSackEntries - 1, 2, maxSackEntries - 1, 1, MaxLength - 3},
		{"gaps cut", maxSackEntries + 5, 5, maxSackEntries, 0, MaxLength - 3},
		{"duplicates alone", 0, maxSackEntries, 0, maxSackEntries, MaxLength - 3},
	} {
		b := AppendSack(nil, 1, 2, gaps[:tt.gaps], dups[:tt.dups])
		x, err := ParseSack(oneChunk(t, b))
		if err != nil || x.Gaps.Len() != tt.wantGaps || x.Dups.Len() != tt.wantDups || len(b) != tt.wantSize {
			t.Errorf("%s: %d gap blocks, %d duplicates, %d bytes, %v; want %d, %d, %d", tt.name,
				x.Gaps.Len(), x.Dups.Len(), len(b), err, tt.wantGaps, tt.wantDups, tt.wantSize)
		}
	}
}

func TestMaxSkips(t *testing.T) {
	f, err := ParseForwardTSN(oneChunk(t, AppendForwardTSN(nil, 1, make([]Skip, MaxSkips+1))))
	if err != nil || f.Skips.Len() != MaxSkips {
		t.Errorf("FORWARD-TSN: %d entries, %v; want %d", f.Skips.Len(), err, MaxSkips)
	}
	i, err := ParseIForwardTSN(oneChunk(t, AppendIForwardTSN(nil, 1, make([]ISkip, MaxISkips+1))))
	if err != nil || i.Skips.Len() != MaxISkips {
		t.Errorf("I-FORWARD-TSN: %d entries, %v; want %d", i.Skips.Len(), err, MaxISkips)
	}
}

// TestMaxResetStreams checks that a request for more streams than fit asks for
// all of them, and that the most that fit do fit into a RE-CONFIG chunk.
func TestMaxResetStreams(t *testing.T) {
	streams := make([]uint16, maxResetStreams+1)
	for n, want := range map[int]int{0: 0, 1: 1, maxResetStreams: maxResetStreams, maxResetStreams + 1: 0} {
		b := AppendReConfig(nil, ReConfig{AppendOutgoingReset(nil, OutgoingReset{}, streams[:n])})
		x, err := ParseReConfig(oneChunk(t, b))
		if err != nil {
			t.Fatal(err)
		}
		p, err := oneParam(x.Params)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := ParseOutgoingReset(p); err != nil || r.Streams.Len() != want {
			t.Errorf("outgoing reset of %d streams names %d, %v; want %d", n, r.Streams.Len(), err, want)
		}
		p, err = oneParam(AppendIncomingReset(nil, 0, streams[:n]))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := ParseIncomingReset(p); err != nil || r.Streams.Len() != want {
			t.Errorf("incoming reset of %d streams names %d, %v; want %d", n, r.Streams.Len(), err, want)
		}
	}
}

func TestMaxMissingParams(t *testing.T) {
	it := NewCauses(AppendMissingParams(nil, make([]ParamType, maxMissingParams+1)...))
	if !it.Next() || it.Err() != nil {
		t.Fatalf("not a cause: %v", it.Err())
	}
	if v, err := ParseMissingParams(it.Cause()); err != nil || v.Len() != maxMissingParams {
		t.Errorf("%d types, %v; want %d", v.Len(), err, maxMissingParams)
	}
}

// TestPadSizes checks that padding takes the size that was asked for, rounded
// down to four.
func TestPadSizes(t *testing.T) {
	for n, want := range map[int]int{-1: 4, 0: 4, 4: 4, 7: 4, 8: 8, 264: 264, 1459: 1456, 1 << 20: MaxLength &^ 3} {
		b := AppendPad(nil, n)
		if c := oneChunk(t, b); ParsePad(c) != nil || len(b) != want {
			t.Errorf("AppendPad(%d) adds %d bytes of %v, want %d", n, len(b), c.Type, want)
		}
		b = AppendPadParam(nil, n)
		if p, err := oneParam(b); err != nil || ParsePadParam(p) != nil || len(b) != want {
			t.Errorf("AppendPadParam(%d) adds %d bytes of %v, want %d", n, len(b), p.Type, want)
		}
		for _, x := range b[4:] {
			if x != 0 {
				t.Fatal("padding is not zero")
			}
		}
	}
}
