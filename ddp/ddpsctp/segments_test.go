package ddpsctp

import (
	"testing"

	"github.com/weftstack/weft/ddp"
)

type noOwner struct{ released int }

func (o *noOwner) Released(error) { o.released++ }

// cutMessage cuts a message of n bytes into segments of at most mulpdu.
func cutMessage(n, mulpdu int, sgl []ddp.Mem, owner ddp.Owner) (segs []ddp.Segment) {
	m := ddp.Message{Header: ddp.Header{Tagged: true}, SGL: sgl, Len: uint32(n), Owner: owner, Credit: owner}
	for last := false; !last; {
		segs = append(segs, ddp.Segment{})
		last = m.Next(mulpdu, &segs[len(segs)-1])
	}
	return segs
}

func TestTrainOf(t *testing.T) {
	var owner, other noOwner
	mem := make([]byte, 200_000)
	whole := func(n, mulpdu int) []ddp.Segment { return cutMessage(n, mulpdu, []ddp.Mem{{B: mem}}, &owner) }
	with := func(segs []ddp.Segment, f func(segs []ddp.Segment)) []ddp.Segment {
		f(segs)
		return segs
	}
	const payload = 1000 - 14
	for _, tt := range []struct {
		name string
		segs []ddp.Segment
		want int
	}{
		{"five", whole(5*payload, 1000), 5},
		{"the last is shorter", whole(4*payload+100, 1000), 5},
		{"one", whole(500, 1000), 1},
		{"another message follows", append(whole(3*payload, 1000), whole(3*payload, 1000)...), 3},
		{"and goes on where this one ends", append(whole(2*payload-1, 1000), cutMessage(payload, 1000, []ddp.Mem{{B: mem[2*payload-1:]}}, &owner)...), 2},
		{"another owner's", append(whole(2*payload, 1000), cutMessage(payload, 1000, []ddp.Mem{{B: mem[2*payload:]}}, &other)...), 2},
		{"more than maxTrain", whole(100*payload, 1000), maxTrain},
		{"more than maxTrainBytes", whole(10*9000, 9000+14), maxTrainBytes / 9000},
		{"two pieces of memory", cutMessage(4*payload, 1000, []ddp.Mem{{B: mem[: 2*payload : 2*payload]}, {B: mem[2*payload:]}}, &owner), 2},
		{"an urgent one within", with(whole(4*payload, 1000), func(s []ddp.Segment) { s[1].Urgent = true }), 2},
		{"payload in the frame", whole(30, 1000), 1},
		{"a copy", with(whole(4*payload, 1000), func(s []ddp.Segment) { s[2].Body = make([]byte, payload) }), 2},
		{"no payload", with(whole(4*payload, 1000), func(s []ddp.Segment) { s[2].Body = nil }), 2},
	} {
		n, body := trainOf(tt.segs)
		total := 0
		for i := range n {
			total += len(tt.segs[i].Body)
		}
		if n != tt.want || len(body) != total || total > 0 && &body[0] != &tt.segs[0].Body[0] {
			t.Errorf("%s: %d segments, %d bytes; want %d, %d", tt.name, n, len(body), tt.want, total)
		}
	}
}

// Owners are told of each segment of a train.
func TestTrainReleased(t *testing.T) {
	var owner noOwner
	tr := &train{owner: &owner, n: 7}
	if tr.Released(nil); owner.released != 7 {
		t.Errorf("Released was called %d times, want 7", owner.released)
	}
}
