package core

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

// tortureScripts is how many scripts TestTorture runs by default. WEFT_TORTURE
// says otherwise: a number of scripts, "from..to" for a range of seeds, or a
// script in hexadecimal digits behind "x", which is traced.
const tortureScripts = 2500

// tortureScript returns the script of a seed: options and a few dozen steps.
func tortureScript(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 42))
	b := make([]byte, tortureOptions+2*(10+rng.IntN(60)))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestTorture runs random scripts of network faults and calls of the API on two
// associations with random options: extensions, schedulers, multihoming, limits.
// After each step everything that they keep accounts of is recounted; at the end
// everything has to be delivered once and in order, or the association to have
// failed for a reason.
func TestTorture(t *testing.T) {
	from, to := uint64(0), uint64(tortureScripts)
	switch s := os.Getenv("WEFT_TORTURE"); {
	case strings.HasPrefix(s, "x"):
		script, err := hex.DecodeString(s[1:])
		if err != nil {
			t.Fatal(err)
		}
		if err := torture(script, t.Logf); err != nil {
			t.Fatal(err)
		}
		return
	case strings.Contains(s, ".."):
		if _, err := fmt.Sscanf(s, "%d..%d", &from, &to); err != nil {
			t.Fatal(err)
		}
	case s != "":
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		to = n
	case testing.Short() || testenv.Race:
		to = tortureScripts / 5
	}
	start := time.Now()
	var next, failed atomic.Uint64
	next.Store(from)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			mem := new(tortureMemory)
			for failed.Load() < 5 {
				seed := next.Add(1) - 1
				if seed >= to {
					return
				}
				if seed%100_000 == 99_999 {
					fmt.Fprintf(os.Stderr, "TestTorture: %d scripts in %v\n", seed+1-from, time.Since(start).Round(time.Second))
				}
				script := tortureScript(seed)
				if err := mem.torture(script, nil); err != nil {
					mem = new(tortureMemory)
					failed.Add(1)
					small := shrinkTorture(script, err)
					t.Errorf("seed %d: %v\nWEFT_TORTURE=x%x", seed, err, small)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("seeds %d to %d in %v", from, min(next.Load(), to), time.Since(start))
}

// shrinkTorture takes out of a failing script what it does not need to fail.
func shrinkTorture(script []byte, err error) []byte {
	kind := func(err error) string { // without numbers
		s, _, _ := strings.Cut(err.Error(), "\n")
		return strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return -1
			}
			return r
		}, s)
	}
	want := kind(err)
	start := time.Now()
	fails := func(s []byte) bool {
		if time.Since(start) > 20*time.Second {
			return false
		}
		e := torture(s, nil)
		return e != nil && kind(e) == want
	}
	for size := (len(script) - tortureOptions) / 2 &^ 1; size >= 2; size = size / 2 &^ 1 {
		for at := tortureOptions; at+size <= len(script); {
			cut := append(append([]byte(nil), script[:at]...), script[at+size:]...)
			if fails(cut) {
				script = cut
			} else {
				at += size
			}
		}
	}
	for i := range min(tortureOptions, len(script)) {
		if script[i] == 0 {
			continue
		}
		zeroed := append([]byte(nil), script...)
		if zeroed[i] = 0; fails(zeroed) {
			script = zeroed
		}
	}
	return script
}

// FuzzAssoc is TestTorture with scripts of a fuzzer's.
func FuzzAssoc(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(tortureScript(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 2000 {
			return
		}
		if err := torture(script, nil); err != nil {
			t.Fatalf("%v\nWEFT_TORTURE=x%x", err, script)
		}
	})
}
