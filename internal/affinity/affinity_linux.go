package affinity

import "golang.org/x/sys/unix"

// Allowed returns the processors that the calling thread may run on, in ascending
// order. It returns nil where that cannot be told.
func Allowed() (cpus []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil // more processors than fit there
	}
	n := set.Count()
	for cpu := 0; len(cpus) < n; cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// Set lets the calling thread, to which its goroutine must be locked, run on the given
// processors only, and so the threads and processes that it starts.
func Set(cpus ...int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return unix.SchedSetaffinity(0, &set)
}
