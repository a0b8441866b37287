package ddpsctp

import "testing"

type noOwner struct{ released int }

func (o *noOwner) Released(error) { o.released++ }

// Owners are told of each segment of a batch.
func TestSegmentsOfABatchAreReleased(t *testing.T) {
	var owner noOwner
	tr := &segmentSeries{owner: &owner, n: 7}
	if tr.Released(nil); owner.released != 7 {
		t.Errorf("Released was called %d times, want 7", owner.released)
	}
}
