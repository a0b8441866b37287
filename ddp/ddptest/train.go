package ddptest

import "github.com/weftstack/weft/ddp"

// Cut returns the segments of a Train with their frames, of which the first begins with
// first, and the part of each that is payload.
func Cut(t *ddp.Train, first uint16) (segs, bodies [][]byte) {
	n := t.Segments()
	frames := t.Frames(nil, first)
	size := len(frames) / n
	for i := range n {
		body := t.Body[i*t.Unit : min((i+1)*t.Unit, len(t.Body))]
		segs = append(segs, append(frames[i*size:(i+1)*size:(i+1)*size], body...))
		bodies = append(bodies, body)
	}
	return segs, bodies
}

// Plain is a channel without batches.
type Plain struct{ ddp.Channel }
