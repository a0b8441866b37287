package ddpsctp

import (
	"sync"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/sctp"
)

const (
	// maxBatch is how many segments that are not of a train are handed to SCTP at a time.
	maxBatch = 11
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
	ddp.ReleaseN(o, n, err)
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
	for sent < len(segs) && err == nil {
		rest := segs[sent:]
		n, body := trainOf(rest)
		if n > 1 {
			err = l.train(sid, rest, n, body)
			if err != nil {
				n = 0
			}
		} else {
			n, err = l.batch(sid, rest)
		}
		sent += n
	}
	return sent, err
}

// train sends the first n segments, which are a train.
func (l sctpLink) train(sid uint16, segs []ddp.Segment, n int, body []byte) error {
	t := trains.Get().(*train)
	t.owner, t.n = segs[0].Owner, n
	frames := t.frames[:0]
	for i := range n {
		frames = append(frames, segs[i].Frame()...)
	}
	err := l.a.TrySendSeries(sctp.Series{Body: body, Unit: len(segs[0].Body), Headers: frames}, sctp.SendOptions{
		Stream: sid, PPID: PPIDSegment, Unordered: true, Force: true,
		Owner: t, Immediate: segs[n-1].Urgent, More: n < len(segs),
	})
	if err != nil {
		t.owner = nil
		trains.Put(t)
	}
	return err
}

// batch sends the segments up to the next train, or some of them, and returns how
// many.
func (l sctpLink) batch(sid uint16, segs []ddp.Segment) (int, error) {
	var out [maxBatch]sctp.Outgoing
	n := 0
	for n < min(len(segs), maxBatch) {
		if n > 0 {
			if k, _ := trainOf(segs[n:min(n+2, len(segs))]); k > 1 {
				break
			}
		}
		seg, o := &segs[n], &out[n]
		o.Msg = seg.Body
		o.Stream, o.PPID, o.Unordered, o.Force = sid, PPIDSegment, true, true
		o.Header, o.Owner, o.Immediate = seg.Frame(), seg.Owner, seg.Urgent
		n++
	}
	out[n-1].More = n < len(segs)
	return l.a.TrySendBatch(out[:n])
}
