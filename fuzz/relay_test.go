package fuzz

import (
	"bytes"
	"testing"

	"github.com/weftstack/weft/sctp/relay/frame"
)

// FuzzRelayFrame: whatever a peer sends, the parser of the relay protocol neither panics nor
// reads beyond it, and what it accepts is encoded to the same bytes again.
func FuzzRelayFrame(f *testing.F) {
	h := frame.Header{Hops: frame.MaxHops, Stream: 1, Job: 2, From: frame.Address{Site: 1, Node: 1, Process: 1}}
	for t := frame.Data; t <= frame.Ping; t++ {
		h.Type, h.Flags = t, frame.First|frame.Last
		f.Add(frame.Append(nil, &frame.Frame{Header: h, PPID: 3, Payload: []byte("payload")}))
	}
	hello := frame.AppendHello(nil, &frame.Greeting{Role: frame.RoleGateway})
	answer := frame.AppendAnswer(nil, &frame.Reply{}, nil, hello)
	f.Add(hello)
	f.Add(answer)
	f.Add(frame.AppendProve(nil, nil, hello, answer))
	f.Add(frame.AppendWelcome(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p frame.Frame
		if err := frame.Parse(b, &p); err == nil {
			again := frame.Append(nil, &p)
			if p.Type == frame.Ping {
				again[1] = b[1] // which has no meaning there
			}
			if !bytes.Equal(again, b) {
				t.Errorf("%x was encoded as %x", b, again)
			}
		}
		if g, err := frame.ParseHello(b); err == nil && !bytes.Equal(frame.AppendHello(nil, &g), b) {
			t.Errorf("hello %x was encoded as %x", b, frame.AppendHello(nil, &g))
		}
		if _, ok, err := frame.ParseAnswer(b, nil, hello); err == nil && !ok && bytes.Equal(b, answer) {
			t.Error("a right answer was not accepted")
		}
		_, _ = frame.ParseProve(b, nil, hello, answer)
		_ = frame.ParseWelcome(b)
	})
}
