package main

import (
	"bytes"
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/bench"
	"github.com/weftstack/weft/internal/testenv"
)

// built builds the programs once for all tests.
func built(t *testing.T) *tools {
	t.Helper()
	tl, err := newTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tl.close)
	return tl
}

// Every stack that is installed carries every load; the others say why not.
func TestEveryStackIsMeasured(t *testing.T) {
	tl := built(t)
	tl.self = buildSelf(t)
	s := &settings{rounds: 1, time: 50 * time.Millisecond}
	for _, c := range contenders() {
		t.Run(c.name, func(t *testing.T) {
			for _, l := range []load{{size: 64 << 10}, {size: 64}, {trip: true, size: 64}} {
				o, _, err := c.measure(t.Context(), s, tl, l)
				switch {
				case errors.Is(err, errMissing):
					testenv.Lacking(t, "%v", err)
				case err != nil:
					t.Errorf("%s of %d bytes: %v", l.word(), l.size, err)
				case l.trip && !(o.p50 > 0 && o.p99 >= o.p50):
					t.Errorf("round trips: p50 %v µs, p99 %v µs", o.p50, o.p99)
				case !l.trip && !(o.gbps > 0 && o.mmsgs > 0 && o.cpu >= 0):
					t.Errorf("%d bytes: %+v", l.size, o)
				}
			}
		})
	}
}

func TestTableHasARowPerStackAndTheRatios(t *testing.T) {
	row := func(v float64) []bench.Sample {
		var r []bench.Sample
		for range columns(false) {
			r = append(r, bench.Sample{v})
		}
		return r
	}
	var b bytes.Buffer
	writeTable(&b, false, map[string][]bench.Sample{"weft-sctp": row(8), "tcp": row(4), "quic-go": {nil, nil, nil, nil, nil}})
	text := b.String()
	if !strings.Contains(text, "| tcp | 2 | 0.500 | 2 | 0.500 | 0.500 |") || strings.Contains(text, "quic-go (") {
		t.Errorf("table:\n%s", text)
	}
	if math.IsNaN(row(8)[0].Median()) {
		t.Error("no median")
	}
}

func TestWrongUseExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{{"dance"}, {"-rounds", "0"}, {"-x"}, {"compare", "loss"}, {"-scale", "0", "loss"}, {"-time", "-1s"}, {"-time", "0"}} {
		if status := run(t.Context(), args); status != 2 {
			t.Errorf("peers %q: status %d, want 2", args, status)
		}
	}
}

// buildSelf builds this program: a test binary cannot play the ends.
func buildSelf(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "peers")
	if said, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return path
}
