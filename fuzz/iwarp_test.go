package fuzz

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/ddp/ddptest"
	"github.com/weftstack/weft/rdmap"
)

// TestStreamsAgainstModel plays random scripts on two streams.
func TestStreamsAgainstModel(t *testing.T) {
	base := rand.Uint64()
	runs := 150
	if testing.Short() {
		runs = 20
	}
	for i := range runs {
		seed := base + uint64(i)
		rng := rand.New(rand.NewPCG(seed, 0))
		t.Run(fmt.Sprintf("seed=%#x", seed), func(t *testing.T) {
			w := newIWARP(t, seed, 60+rng.IntN(1400), 1+rng.IntN(100))
			w.play(w.random(20 + rng.IntN(400)))
			w.finish()
		})
	}
}

// FuzzStreams plays a script on two streams over a reordering pipe.
func FuzzStreams(f *testing.F) {
	f.Add(uint64(1), uint16(1426), uint8(50), []byte{0, 100, 8, 200, 24, 30, 48, 255, 64, 1, 72, 20, 16, 3, 40, 0})
	f.Add(uint64(2), uint16(60), uint8(1), []byte{1, 255, 49, 255, 0, 255, 48, 255, 51, 9, 2, 9, 64, 0, 65, 1})
	f.Fuzz(func(t *testing.T, seed uint64, mulpdu uint16, window uint8, script []byte) {
		if len(script) > 200 {
			return
		}
		w := newIWARP(t, seed, 40+int(mulpdu)%9000, 1+int(window))
		w.play(script)
		w.finish()
	})
}

// FuzzDDPHeader checks that what parses comes out as it went in, reserved bits
// aside.
func FuzzDDPHeader(f *testing.F) {
	f.Add(ddp.AppendHeader(nil, &ddp.Header{Tagged: true, Last: true, Ctrl: 0x40, STag: 1, TO: 2}))
	f.Add(ddp.AppendHeader(nil, &ddp.Header{Ctrl: 0x43, QN: 1, MSN: 2, MO: 3, Word: 4}))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, fault := ddp.ParseHeader(b)
		if fault == ddp.FaultLocal {
			if len(b) >= ddp.UntaggedHeaderLen {
				t.Fatal("a whole header was refused")
			}
			return
		}
		if len(payload) != len(b)-h.Len() {
			t.Fatalf("payload of %d in %d", len(payload), len(b))
		}
		got := ddp.AppendHeader(nil, &h)
		want := bytes.Clone(b[:h.Len()])
		want[0] &= 0xC3
		if fault != 0 {
			want[0] = want[0]&^3 | ddp.Version
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("% x became % x", want, got)
		}
	})
}

// FuzzRDMAPHeaders does the same for the headers of RDMAP and for session
// control messages.
func FuzzRDMAPHeaders(f *testing.F) {
	f.Add(rdmap.AppendTerminate(nil, &rdmap.TerminateHeader{Fault: 0x0101, HasLength: true, SegmentLength: 46, HasDDP: true,
		DDP: ddp.Header{Last: true, QN: 1, MSN: 1, Ctrl: 0x41}, HasRead: true}))
	f.Add(make([]byte, rdmap.ReadRequestLen))
	f.Add(make([]byte, rdmap.AtomicRequestLen))
	f.Add(rdmap.AppendAtomicResponse(nil, 7, 1<<63))
	f.Add(ddp.AppendEnhanced(nil, ddp.Enhanced{PeerToPeer: true, RTRRead: true, IRD: 3, ORD: 4}))
	f.Add(ddpsctp.AppendControl(nil, &ddpsctp.Control{Function: ddpsctp.EnhancedInitiate, Private: []byte("x")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, ok := rdmap.ParseTerminate(b); ok && !h.Reversed { // else it is written in the right order
			h2, ok := rdmap.ParseTerminate(rdmap.AppendTerminate(nil, &h))
			if h2.Reversed {
				return // without the bits that told otherwise, the error exists only the wrong way round
			}
			if !ok || h2 != h {
				t.Fatalf("%+v became %+v", h, h2)
			}
		}
		if h, ok := rdmap.ParseReadRequest(b); ok && !bytes.Equal(rdmap.AppendReadRequest(nil, &h), b) {
			t.Fatalf("read request % x changed", b)
		}
		if h, ok := rdmap.ParseAtomicRequest(b); ok {
			if h2, _ := rdmap.ParseAtomicRequest(rdmap.AppendAtomicRequest(nil, &h)); h2 != h {
				t.Fatalf("atomic request % x changed", b)
			}
		}
		if id, was, ok := rdmap.ParseAtomicResponse(b); ok && !bytes.Equal(rdmap.AppendAtomicResponse(nil, id, was), b) {
			t.Fatalf("atomic response % x changed", b)
		}
		if e, ok := ddp.ParseEnhanced(b); ok {
			if e2, ok := ddp.ParseEnhanced(ddp.AppendEnhanced(nil, e)); !ok || e2 != e {
				t.Fatalf("%+v became %+v", e, e2)
			}
		}
		if c, ok := ddpsctp.ParseControl(b); ok {
			c2, ok := ddpsctp.ParseControl(ddpsctp.AppendControl(nil, &c))
			if !ok || c2.Function != c.Function || c2.Enhanced != c.Enhanced || !bytes.Equal(c2.Private, c.Private) {
				t.Fatalf("%+v became %+v", c, c2)
			}
		}
	})
}

// FuzzHostilePeer gives a stream arbitrary segments, with arbitrary numbers and
// STags that the peer was told. Nothing outside what it may write changes, and
// the stream ends as it should.
func FuzzHostilePeer(f *testing.F) {
	seg := func(seq byte, stag byte, h ddp.Header, payload ...byte) []byte {
		b := append(ddp.AppendHeader([]byte{seq, stag}, &h), payload...)
		return append([]byte{byte(len(b))}, b...)
	}
	read := rdmap.AppendReadRequest(nil, &rdmap.ReadRequestHeader{Size: 10, SrcSTag: 1})
	f.Add(bytes.Join([][]byte{
		seg(1, 1, ddp.Header{Tagged: true, Ctrl: 0x40, TO: 3}, 1, 2, 3),
		seg(0, 0, ddp.Header{Last: true, Ctrl: 0x43, MSN: 1}, 4, 5, 6),
		seg(2, 2, ddp.Header{Last: true, Ctrl: 0x41, QN: 1, MSN: 1}, read...),
		seg(3, 3, ddp.Header{Tagged: true, Last: true, Ctrl: 0x42}, 1),
		seg(4, 0, ddp.Header{Last: true, Ctrl: 0x47, QN: 2, MSN: 1}, 1, 2, 0, 0),
	}, nil))
	f.Fuzz(func(t *testing.T, script []byte) {
		const size, guard = 64, 32
		p := ddptest.NewPipe(1, 100)
		w := &iwarp{t: t}
		s := &iwarpSide{w: w, table: ddp.NewTable()}
		mem := bytes.Repeat([]byte{0x55}, 3*guard+2*size)
		domain := &ddp.Domain{}
		rw, _ := s.table.Add(mem[guard:guard+size:guard+size], 0, ddp.RemoteWrite|ddp.RemoteAtomic, domain, nil)
		ro, _ := s.table.Add(mem[2*guard+size:2*guard+2*size], 0, ddp.RemoteRead, domain, nil)
		stream, err := rdmap.NewStream(rdmap.Config{Table: s.table, Domain: domain, SendDepth: 4, RecvDepth: 4,
			SendSGEs: 1, RecvSGEs: 1, MaxInline: 8, IRD: 2, ORD: 2, Window: 8, Observer: s})
		if err != nil {
			t.Fatal(err)
		}
		p.A.Attach(stream)
		p.B.Attach(nullSink{})
		stream.Bind(p.A)
		stream.Start(2)
		var recv [4][]byte
		for i := range recv {
			recv[i] = make([]byte, 16)
			if stream.ReserveRecv(1) != nil {
				t.Fatal("no room")
			}
			b := stream.NextRecv()
			b.ID = uint64(i)
			b.SGL = append(b.SGL, ddp.Mem{B: recv[i]})
			stream.PostRecv()
			stream.CommitRecv()
		}
		sink := bytes.Repeat([]byte{0x66}, 40)
		if err := stream.Reserve(1); err != nil {
			t.Fatal(err)
		}
		op := stream.NextOp()
		sgl, inline := op.SGL, op.Inline
		op.Work = rdmap.Work{Kind: rdmap.OpRead, STag: 5, SGL: append(sgl, ddp.Mem{B: sink[10:30:30]}), Inline: inline}
		stream.Commit()

		stags := [4]uint32{rw.STag(), ro.STag(), 0, 0xFFFFFFFF}
		for len(script) > 0 {
			n := min(int(script[0]), len(script)-1)
			chunk := bytes.Clone(script[1 : 1+n])
			script = script[1+n:]
			if len(chunk) < 2 {
				continue
			}
			seq, b := uint64(chunk[0]), chunk[2:]
			if len(b) >= 6 && chunk[1] > 0 { // an STag the peer knows
				v := stags[chunk[1]%4]
				b[2], b[3], b[4], b[5] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
			}
			if chunk[1]&0x40 != 0 && len(b) > ddp.TaggedHeaderLen { // with one that goes on with it
				next := bytes.Clone(b)
				to := binary.BigEndian.Uint64(b[6:]) + uint64(len(b)-ddp.TaggedHeaderLen)
				binary.BigEndian.PutUint64(next[6:], to)
				stream.Segments(seq, [][]byte{b, next})
			} else {
				stream.Segment(seq, b)
			}
			for range 4 {
				p.Step()
			}
		}
		p.Cut()
		for i, b := range mem {
			if in := i >= guard && i < guard+size; !in && b != 0x55 {
				t.Fatalf("byte %d outside the writable region changed", i)
			}
		}
		for i, b := range sink {
			if (i < 10 || i >= 30) && b != 0x66 {
				t.Fatalf("byte %d outside the sink of a read changed", i)
			}
		}
		if st, err := stream.State(); st != rdmap.StateError || err == nil || s.drained != 1 {
			t.Fatalf("state %v, error %v, drained %d", st, err, s.drained)
		}
	})
}

// nullSink is a peer that does not listen.
type nullSink struct{}

func (nullSink) Segment(uint64, []byte) error    { return nil }
func (nullSink) Segments(uint64, [][]byte) error { return nil }
func (nullSink) Skip(uint64) error               { return nil }
func (nullSink) End(uint64) error                { return nil }
func (nullSink) Lost(error)                      {}
