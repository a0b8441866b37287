package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// bindKinds is what ranks can be bound to: nothing, a core with all its hardware
// threads, or one of those.
var bindKinds = []string{"none", "core", "hwthread"}

// bindPlaces returns the processors for each of n ranks, nil if they are not bound.
// Allowed are those that this process may use; siblings returns the processors of the
// core of one.
func bindPlaces(kind string, n int, allowed []int, siblings func(cpu int) []int) ([][]int, error) {
	if kind == "" || kind == "none" {
		return nil, nil
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
		return nil, fmt.Errorf("-bind-to %s: there are %d for %d ranks", kind, len(places), n)
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
