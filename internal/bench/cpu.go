//go:build unix

package bench

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// CPUSeconds returns the processor time that this process has used.
func CPUSeconds() float64 { return rusage(syscall.RUSAGE_SELF) }

// ChildrenCPUSeconds returns what the children used that have been waited for,
// and theirs.
func ChildrenCPUSeconds() float64 { return rusage(syscall.RUSAGE_CHILDREN) }

func rusage(who int) float64 {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// SystemCPU is the processor time that everything on this machine had used at
// some moment, in seconds; negative where that cannot be learned.
type SystemCPU float64

// ReadSystemCPU takes the reading.
func ReadSystemCPU() SystemCPU {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return -1
	}
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	total := 0.0
	for i, field := range bytes.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // name, idle, iowait, guests
			continue
		}
		v, err := strconv.ParseFloat(string(field), 64)
		if err != nil {
			return -1
		}
		total += v
	}
	return SystemCPU(total / 100) // USER_HZ
}

// Others returns how many processors others than ourselves kept busy since the
// reading, when we used own seconds in the time that it took; -1 if that cannot
// be learned.
func (s SystemCPU) Others(own float64, took time.Duration) float64 {
	now := ReadSystemCPU()
	if s < 0 || now < 0 {
		return -1
	}
	return max(0, (float64(now-s)-own)/took.Seconds())
}
