package bench

import (
	"syscall"
	"time"
)

// CPUSeconds returns the processor time that this process has used.
func CPUSeconds() float64 {
	var created, exited, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err != nil || syscall.GetProcessTimes(self, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	// 100 ns units; Filetime.Nanoseconds is about dates.
	ticks := func(f syscall.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return float64(ticks(kernel)+ticks(user)) / 1e7
}

// ChildrenCPUSeconds is not known here.
func ChildrenCPUSeconds() float64 { return 0 }

// SystemCPU would be what everything on this machine has used.
type SystemCPU struct{}

// ReadSystemCPU reads nothing here.
func ReadSystemCPU() SystemCPU { return SystemCPU{} }

// Others returns -1: it cannot be learned here.
func (SystemCPU) Others(float64, time.Duration) float64 { return -1 }
