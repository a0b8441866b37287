package ddpsctp

import (
	"sync"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/sctp"
)

// maxBatch is how many segments that are not of a batch are handed to SCTP at a time.
const maxBatch = 11

// segmentSeries is the owner of the memory of an sctp.Series.
type segmentSeries struct {
	owner  ddp.Owner
	n      int
	frames [ddp.MaxTrain * ddp.MaxTrainFrame]byte
}

var segmentSeriesPool = sync.Pool{New: func() any { return new(segmentSeries) }}

// Released implements sctp.SendOwner.
func (t *segmentSeries) Released(err error) {
	o, n := t.owner, t.n
	t.owner = nil
	segmentSeriesPool.Put(t)
	ddp.ReleaseN(o, n, err)
}

// SendSegmented implements Link.
func (l sctpLink) SendSegmented(sid, ssn uint16, t *ddp.Train) error {
	o := segmentSeriesPool.Get().(*segmentSeries)
	o.owner, o.n = t.Owner, t.Segments()
	err := l.a.TrySendSeries(sctp.Series{Body: t.Body, Unit: t.Unit, Headers: t.Frames(o.frames[:0], ssn)},
		sctp.SendOptions{
			Stream: sid, PPID: PPIDSegment, Unordered: true, Force: true, Owner: o, Immediate: t.Urgent,
		})
	if err != nil {
		o.owner = nil
		segmentSeriesPool.Put(o)
	}
	return err
}

// Segments implements Link.
func (l sctpLink) Segments(sid uint16, segs []ddp.Segment) (sent int, err error) {
	for sent < len(segs) && err == nil {
		var n int
		n, err = l.batch(sid, segs[sent:])
		sent += n
	}
	return sent, err
}

// batch sends the segments, or the first of them, and returns how many.
func (l sctpLink) batch(sid uint16, segs []ddp.Segment) (int, error) {
	var out [maxBatch]sctp.Outgoing
	n := min(len(segs), maxBatch)
	for i := range n {
		seg, o := &segs[i], &out[i]
		o.Msg = seg.Body
		o.Stream, o.PPID, o.Unordered, o.Force = sid, PPIDSegment, true, true
		o.Header, o.Owner, o.Immediate = seg.Frame(), seg.Owner, seg.Urgent
	}
	out[n-1].More = n < len(segs)
	return l.a.TrySendBatch(out[:n])
}
