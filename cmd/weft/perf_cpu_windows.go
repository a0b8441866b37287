package main

import (
	"syscall"
	"time"
)

// cpuSeconds returns the processor time that this process has used.
func cpuSeconds() float64 {
	var created, exited, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err != nil || syscall.GetProcessTimes(self, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	// 100 ns units; Filetime.Nanoseconds is about dates.
	ticks := func(f syscall.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return float64(ticks(kernel)+ticks(user)) / 1e7
}

// systemCPU would be what everything on this machine has used.
type systemCPU struct{}

func otherCPU() systemCPU { return systemCPU{} }

func (systemCPU) since(float64, time.Duration) float64 { return -1 }
