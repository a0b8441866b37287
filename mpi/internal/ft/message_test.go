package ft

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// A message is read as it was written, and no other length of it is accepted.
func TestMessage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 7, 8, 9, 100} {
		b := NewBallot(n)
		b.Flags = rng.Uint64()
		for i := range n {
			b.Failed[i], b.Acked[i] = rng.IntN(2) == 0, rng.IntN(2) == 0
		}
		for step := StepVote; step < stepLimit; step++ {
			m := Message{Step: step, Comm: rng.Uint64(), Round: rng.Uint64(), Rank: n - 1, N: n}
			ballot := b
			if step == StepRevoke {
				ballot = nil
			}
			enc := m.Encode(ballot)
			if len(enc) > MessageLen(n) {
				t.Errorf("message about %d members has %d bytes, more than MessageLen = %d", n, len(enc), MessageLen(n))
			}
			got, ok := Parse(enc)
			if !ok {
				t.Fatalf("message %+v is not accepted", m)
			}
			if ballot != nil && !reflect.DeepEqual(got.Ballot(), ballot) {
				t.Errorf("ballot = %+v, want %+v", got.Ballot(), ballot)
			}
			if got.Body = nil; !reflect.DeepEqual(got, m) {
				t.Errorf("message = %+v, want %+v", got, m)
			}
			if _, ok := Parse(enc[:len(enc)-1]); ok {
				t.Errorf("message of %d bytes instead of %d is accepted", len(enc)-1, len(enc))
			}
			if _, ok := Parse(append(slices.Clone(enc), 0)); ok {
				t.Errorf("message of %d bytes instead of %d is accepted", len(enc)+1, len(enc))
			}
		}
	}
}

// Impossible fields are refused.
func TestMessageMalformed(t *testing.T) {
	for name, m := range map[string]Message{
		"no step":      {Rank: 0, N: 1},
		"unknown step": {Step: stepLimit, Rank: 0, N: 1},
		"no members":   {Step: StepRevoke},
		"rank":         {Step: StepRevoke, Rank: 3, N: 3},
		"too many":     {Step: StepRevoke, N: maxMembers + 1},
	} {
		if got, ok := Parse(m.Encode(nil)); ok {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
}
