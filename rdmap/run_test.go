package rdmap

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/ddp"
)

// BenchmarkSegments takes in a batch of a Write, one by one and as a run.
func BenchmarkSegments(b *testing.B) {
	const n, unit = 44, 1426
	for _, run := range []bool{false, true} {
		name := "one"
		if run {
			name = "run"
		}
		b.Run(name, func(b *testing.B) {
			var c tally
			table, domain := ddp.NewTable(), &ddp.Domain{}
			s, err := NewStream(Config{Table: table, Domain: domain, SendDepth: 1, RecvDepth: 1, IRD: 1, ORD: 1, Observer: &c})
			if err != nil {
				b.Fatal(err)
			}
			var ch direct
			s.Bind(&ch)
			s.Start(1)
			r, err := table.Add(make([]byte, n*unit), 0, ddp.RemoteWrite, domain, nil)
			if err != nil {
				b.Fatal(err)
			}
			segs := make([][]byte, n)
			for i := range segs {
				h := ddp.Header{Tagged: true, Last: i == n-1, Ctrl: Control(Write), STag: r.STag(), TO: uint64(i * unit)}
				segs[i] = append(ddp.AppendHeader(nil, &h), make([]byte, unit)...)
			}
			b.SetBytes(n * unit)
			b.ReportAllocs()
			seq := uint64(0)
			for b.Loop() {
				if run {
					err = s.Segments(seq, segs)
				} else {
					for i := range segs {
						err = s.Segment(seq+uint64(i), segs[i])
					}
				}
				if seq += n; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What comes in a run is checked as it is one by one, for what all of it wants.
func TestRunsAreChecked(t *testing.T) {
	const unit, size = 10, 95
	for _, tt := range []struct {
		name   string
		access ddp.Access
		ctrl   byte
		at     uint64 // where it begins
		read   bool   // it answers a read
		stag   uint32 // added to the right one
		fault  bool
	}{
		{name: "write", access: ddp.RemoteWrite, ctrl: Control(Write)},
		{name: "write over the end", access: ddp.RemoteWrite, ctrl: Control(Write), at: 50, fault: true},
		{name: "write without the right", access: ddp.RemoteRead, ctrl: Control(Write), fault: true},
		{name: "write to nothing", access: ddp.RemoteWrite, ctrl: Control(Write), stag: 1 << 8, fault: true},
		{name: "another version", access: ddp.RemoteWrite, ctrl: Control(Write) ^ 0xC0, fault: true},
		{name: "tagged send", access: ddp.RemoteWrite, ctrl: Control(Send), fault: true},
		{name: "response", ctrl: Control(ReadResponse), read: true},
		{name: "response over the end", ctrl: Control(ReadResponse), read: true, at: 50, fault: true},
		{name: "response elsewhere", ctrl: Control(ReadResponse), read: true, stag: 1 << 8, fault: true},
		{name: "response to nothing", ctrl: Control(ReadResponse), fault: true},
	} {
		var mem [2][]byte
		var errs [2]error
		var sides [2]*side
		for i := range mem {
			p := newPair(t, pairConfig{})
			mem[i], sides[i] = make([]byte, size), p.a
			r, err := p.a.table.Add(mem[i], 0, tt.access, p.a.domain, nil)
			if err != nil {
				t.Fatal(err)
			}
			stag := r.STag()
			if tt.ctrl == Control(ReadResponse) {
				stag = p.a.s.sink.STag()
			}
			if tt.read {
				p.a.post(Work{ID: 1, Kind: OpRead, Flags: FlagSignaled}, mem[i][:40], mem[i][40:])
			}
			var segs [][]byte
			for k := range 6 {
				h := ddp.Header{Tagged: true, Ctrl: tt.ctrl, STag: stag + tt.stag, TO: tt.at + uint64(k*unit)}
				segs = append(segs, seg(h, []byte("0123456789")...))
			}
			if i == 0 {
				for k := range segs {
					errs[i] = p.a.s.Segment(uint64(k), segs[k])
				}
			} else {
				errs[i] = p.a.s.Segments(0, segs)
			}
		}
		a, b := sides[0], sides[1]
		if !bytes.Equal(mem[0], mem[1]) || errs[0] != errs[1] || fmt.Sprint(a.states, errors.Unwrap(a.err)) != fmt.Sprint(b.states, errors.Unwrap(b.err)) {
			t.Errorf("%s: one by one %v %v %q, together %v %v %q", tt.name, a.states, a.err, mem[0], b.states, b.err, mem[1])
		}
		if faulted := a.err != nil; faulted != tt.fault {
			t.Errorf("%s: %v", tt.name, a.err)
		}
	}
}
