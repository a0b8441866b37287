package ddpsctp

import (
	"sync"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/sctp"
)

const (
	// batch is how many segments that are not of a train are handed to SCTP at a time.
	batch = 11
	// maxTrain and maxTrainBytes bound the segments of a train, and their payload.
	maxTrain      = 64
	maxTrainBytes = 64 << 10
	// maxTrainFrame bounds their frames: a header without payload.
	maxTrainFrame = 24
)

// train is segments of a message whose payload is one piece of memory. They go as a
// Series, of which it is the owner.
type train struct {
	owner  ddp.Owner
	n      int
	frames [maxTrain * maxTrainFrame]byte
}

var trains = sync.Pool{New: func() any { return new(train) }}

// Released implements sctp.SendOwner.
func (t *train) Released(err error) {
	o, n := t.owner, t.n
	t.owner = nil
	trains.Put(t)
	for range n {
		o.Released(err)
	}
}

// trainOf returns how many of the segments, at least one, make a train, and their
// payload. All but the last have the same length.
func trainOf(segs []ddp.Segment) (n int, body []byte) {
	first := &segs[0]
	body = first.Body
	unit, frame := len(body), len(first.Frame())
	if unit == 0 || frame > maxTrainFrame {
		return 1, body
	}
	for n = 1; n < min(len(segs), maxTrain) && len(body) == n*unit && !segs[n-1].Urgent; n++ {
		s := &segs[n]
		more := len(s.Body)
		if more == 0 || more > unit || len(body)+more > maxTrainBytes || len(s.Frame()) != frame || s.Owner != first.Owner || !follows(body, s.Body) {
			break
		}
		body = body[:len(body)+more]
	}
	return n, body
}

// follows reports whether b begins where a ends, in the same piece of memory.
func follows(a, b []byte) bool {
	n := len(a)
	return cap(a)-n >= len(b) && &a[:n+1][n] == &b[0]
}

// segments implements link.
func (l sctpLink) segments(sid uint16, segs []ddp.Segment) (sent int, err error) {
	opts := sctp.SendOptions{Stream: sid, PPID: PPIDSegment, Unordered: true, Force: true}
	for sent < len(segs) && err == nil {
		rest := segs[sent:]
		n, body := trainOf(rest)
		if n == 1 {
			n, err = l.batch(rest, &opts)
			sent += n
			continue
		}
		opts.More, opts.Immediate = n < len(rest), rest[n-1].Urgent
		if err = l.train(rest[:n], body, &opts); err == nil {
			sent += n
		}
	}
	return sent, err
}

// train sends a train.
func (l sctpLink) train(segs []ddp.Segment, body []byte, opts *sctp.SendOptions) error {
	t := trains.Get().(*train)
	t.owner, t.n = segs[0].Owner, len(segs)
	frames := t.frames[:0]
	for i := range segs {
		frames = append(frames, segs[i].Frame()...)
	}
	o := *opts
	o.Owner = t
	err := l.a.TrySendSeries(sctp.Series{Body: body, Unit: len(segs[0].Body), Headers: frames}, o)
	if err != nil {
		t.owner = nil
		trains.Put(t)
	}
	return err
}

// batch sends the segments up to the next train, or some of them, and returns how
// many.
func (l sctpLink) batch(segs []ddp.Segment, opts *sctp.SendOptions) (int, error) {
	var out [batch]sctp.Outgoing
	n := 0
	for n < min(len(segs), batch) {
		if n > 0 {
			if k, _ := trainOf(segs[n:]); k > 1 {
				break
			}
		}
		seg, o := &segs[n], &out[n]
		o.Msg, o.SendOptions = seg.Body, *opts
		o.Header, o.Owner, o.Immediate = seg.Frame(), seg.Owner, seg.Urgent
		n++
	}
	out[n-1].More = n < len(segs)
	return l.a.TrySendBatch(out[:n])
}
