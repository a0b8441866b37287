package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// placesOf is bindPlaces for this machine.
func placesOf(kind string, n int) ([][]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("-bind-to %s: %w", kind, err)
	}
	var allowed []int
	for cpu := 0; len(allowed) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			allowed = append(allowed, cpu)
		}
	}
	return bindPlaces(kind, n, allowed, func(cpu int) []int {
		b, _ := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		return parseCPUs(string(b))
	})
}

// startOn calls start, which starts a process, so that it runs on the given processors
// only, or as this one does if there are none. The calling goroutine must be locked to
// its thread: a process inherits from the thread that starts it where it may run.
func startOn(cpus []int, start func() error) error {
	if len(cpus) == 0 {
		return start()
	}
	var was, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		return fmt.Errorf("binding a rank: %w", err)
	}
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("binding a rank to processor %v: %w", cpus, err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &was) }() // it was possible before
	return start()
}
