package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weftstack/weft/internal/bench"
)

// measured are the values of one benchmark by unit.
type measured map[string]bench.Sample

// parse reads results by the name of the benchmark, without the number of
// processors behind it.
func parse(text []byte) map[string]measured {
	all := map[string]measured{}
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := f[0]
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		if all[name] == nil {
			all[name] = measured{}
		}
		if n, err := strconv.ParseFloat(f[1], 64); err == nil {
			all[name][iterations] = append(all[name][iterations], n)
		}
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				all[name][f[i+1]] = append(all[name][f[i+1]], v)
			}
		}
	}
	return all
}

// iterations is the unit of how often a benchmark ran.
const iterations = "N"

// Allocations per operation may grow by a part, and by one: what is allocated
// once is spread over a number of operations that varies. (That nothing allocates
// in steady state is asserted by tests.)
const (
	allocSlack = 0.1
	allocOnce  = 1
)

// moreAllocs reports whether more is allocated per operation and in all: of fewer
// operations each bears more of what is allocated once.
func moreAllocs(was, is measured) bool {
	allowed := was["allocs/op"].Median()*(1+allocSlack) + allocOnce
	b := is["allocs/op"].Median()
	return b > allowed && b*is[iterations].Median() > allowed*was[iterations].Median()
}

// compare returns what has become worse: allocations, and times by more than max
// percent if that is not 0.
func compare(old, now []byte, max float64) (worse []error) {
	before, after := parse(old), parse(now)
	var names []string
	for name := range after {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		was, is := before[name], after[name]
		if was == nil {
			continue
		}
		if moreAllocs(was, is) {
			worse = append(worse, fmt.Errorf("%s allocates %.0f times per operation, %.0f before", name,
				is["allocs/op"].Median(), was["allocs/op"].Median()))
		}
		if a, b := was["ns/op"].Median(), is["ns/op"].Median(); max > 0 && b > a*(1+max/100) {
			worse = append(worse, fmt.Errorf("%s takes %s ns, %s before: %.0f %% longer", name, bench.Digits(b),
				bench.Digits(a), 100*(b/a-1)))
		}
	}
	return worse
}
