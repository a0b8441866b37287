package perf

import (
	"time"

	"github.com/weftstack/weft/internal/bench"
)

// cpuSeconds returns the processor time that this process has used.
func cpuSeconds() float64 { return bench.CPUSeconds() }

// systemCPU is the processor time that everything on this machine had used.
type systemCPU struct{ bench.SystemCPU }

// otherCPU takes the reading.
func otherCPU() systemCPU { return systemCPU{bench.ReadSystemCPU()} }

// since returns how many processors others than ourselves kept busy since the
// reading, when we used own seconds; -1 if that is not known.
func (s systemCPU) since(own float64, took time.Duration) float64 { return s.Others(own, took) }
