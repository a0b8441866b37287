package launch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weftstack/weft/internal/affinity"
)

// bindKinds is what ranks can be bound to: a core with all its hardware threads, or one
// of those.
var bindKinds = []string{"core", "hwthread"}

// binds reports whether a kind, which may be left out, binds ranks.
func binds(kind string) bool { return kind != "" && kind != "none" }

// CheckBind reports a kind that is none of bindKinds.
func CheckBind(kind string) error {
	if binds(kind) && !slices.Contains(bindKinds, kind) {
		return fmt.Errorf("-bind-to %q: want core, hwthread or none", kind)
	}
	return nil
}

// placesOf is bindPlaces for this machine.
func placesOf(kind string, n int) ([][]int, error) {
	return bindPlaces(kind, n, affinity.Allowed(), func(cpu int) []int {
		b, _ := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		return parseCPUs(string(b))
	})
}

// bindPlaces returns the processors for each of n ranks, nil if they are not bound.
// Allowed are those that this process may use, nil if that is not known; siblings
// returns the processors of the core of one.
func bindPlaces(kind string, n int, allowed []int, siblings func(cpu int) []int) ([][]int, error) {
	if !binds(kind) {
		return nil, nil
	}
	if allowed == nil {
		return nil, fmt.Errorf("-bind-to %s: %w on this system", kind, errors.ErrUnsupported)
	}
	var places [][]int
	seen := make(map[int]bool)
	for _, cpu := range allowed {
		if seen[cpu] {
			continue
		}
		place := []int{cpu}
		if kind == "core" {
			place = slices.DeleteFunc(siblings(cpu), func(c int) bool { return !slices.Contains(allowed, c) })
			if !slices.Contains(place, cpu) {
				place = []int{cpu}
			}
		}
		for _, c := range place {
			seen[c] = true
		}
		places = append(places, place)
	}
	if n > len(places) {
		return nil, fmt.Errorf("-bind-to %s: %d available for %d ranks", kind, len(places), n)
	}
	return places[:n], nil
}

// parseCPUs reads processors as Linux lists them: 0-3,8.
func parseCPUs(list string) (cpus []int) {
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(lo)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(hi)
		}
		if err != nil || first < 0 || last-first >= maxCPUs {
			return nil
		}
		for c := first; c <= last; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

// maxCPUs bounds a range of processors in a list.
const maxCPUs = 1 << 16

// startOn calls start, which starts a process, so that it runs on the given processors
// only, or as this one does if there are none. The calling goroutine must be locked to
// its thread: a process inherits from the thread that starts it where it may run.
func startOn(cpus []int, start func() error) error {
	if len(cpus) == 0 {
		return start()
	}
	was := affinity.Allowed()
	if err := affinity.Set(cpus...); err != nil {
		return fmt.Errorf("binding a rank to processor %v: %w", cpus, err)
	}
	defer func() { _ = affinity.Set(was...) }() // it was possible before
	return start()
}
