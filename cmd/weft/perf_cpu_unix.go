//go:build unix

package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// cpuSeconds returns the processor time that this process has used.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// systemCPU is the processor time that everything on this machine had used at
// some moment, in seconds; negative where that cannot be learned.
type systemCPU float64

// otherCPU takes the reading.
func otherCPU() systemCPU {
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
	return systemCPU(total / 100) // USER_HZ
}

// since returns how many processors others than ourselves kept busy since the
// reading, when we used own seconds.
func (s systemCPU) since(own float64, took time.Duration) float64 {
	now := otherCPU()
	if s < 0 || now < 0 {
		return -1
	}
	return max(0, (float64(now-s)-own)/took.Seconds())
}
