package timer

import (
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// The earliest deadline is right whatever is set, moved and stopped.
func TestTimersNext(t *testing.T) {
	rng := rand.New(rand.NewPCG(94, 7))
	var tm Set
	tm.Resize(3)
	for range 20_000 {
		at := clock.Time(rng.IntN(50))
		if rng.IntN(3) == 0 {
			at = 0
		}
		switch rng.IntN(3) {
		case 0:
			tm.Start(Kind(rng.IntN(int(NumKinds))), at)
		case 1:
			tm.StartPath(PathKind(rng.IntN(int(NumPathKinds))), rng.IntN(3), at)
		case 2:
			now := clock.Time(rng.IntN(60))
			k := Kind(rng.IntN(int(NumKinds)))
			due := tm.One[k] != 0 && tm.One[k] <= now
			if got := tm.Expired(k, now); got != due || got && tm.Running(k) {
				t.Fatalf("expired = %v, want %v", got, due)
			}
		}
		want := clock.Time(0)
		for _, x := range tm.One {
			want = Earliest(want, x)
		}
		for _, x := range tm.Path {
			for _, y := range x {
				want = Earliest(want, y)
			}
		}
		if got := tm.Next(); got != want {
			t.Fatalf("next = %d, want %d", got, want)
		}
	}
}
