package perf

import (
	"fmt"
	"time"

	"github.com/weftstack/weft/internal/bench"
)

// interval is what happened in a part of a measurement, as -json prints it.
type interval struct {
	Start       float64 `json:"start"` // seconds since the measurement began
	End         float64 `json:"end"`
	Bytes       uint64  `json:"bytes"`
	Gbps        float64 `json:"gbps"`
	MsgsPerS    float64 `json:"msgs_per_s"`
	Retransmits uint64  `json:"retransmissions"`
	Drops       uint64  `json:"drops"`
}

func newPerfInterval(c counts, from, to time.Duration) interval {
	seconds := (to - from).Seconds()
	return interval{
		Start: from.Seconds(), End: to.Seconds(), Bytes: c.Bytes, Gbps: float64(c.Bytes) * 8 / seconds / 1e9,
		MsgsPerS: float64(c.Msgs) / seconds, Retransmits: c.Retransmits, Drops: c.Drops,
	}
}

// print prints the interval as a line, the first one under a head.
func (i *interval) print(first bool) {
	if first {
		fmt.Printf("%-17s %12s %14s %14s %8s %7s\n", "interval", "transfer", "rate", "messages/s", "retrans", "drops")
	}
	fmt.Printf("%7.2f–%-7.2f s %9.3f GB %9.3f Gb/s %14.0f %8d %7d\n", i.Start, i.End, float64(i.Bytes)/1e9, i.Gbps,
		i.MsgsPerS, i.Retransmits, i.Drops)
}

// noise is a remark on a run that other programs disturbed, or empty.
func (r *result) noise() string {
	if r.OtherCPU <= bench.Noisy {
		return ""
	}
	return fmt.Sprintf("Other programs used %.1f processors meanwhile: too noisy, repeat on a quiet machine.\n",
		r.OtherCPU)
}

// checkMode finds flags that the mode would ignore.
func (o *options) checkMode() error {
	udp, tcp, mpi := o.Mode == "udp", o.Mode == "tcp", o.Mode == "mpi"
	switch {
	case o.Bidir && (udp || mpi):
		return fmt.Errorf("mode %s does not support -bidir", o.Mode)
	case o.Bidir && o.Latency:
		return fmt.Errorf("-bidir and -latency are mutually exclusive")
	case o.Assocs > 1 && (udp || mpi):
		return fmt.Errorf("mode %s does not support -assocs", o.Mode)
	case o.Streams > 1 && (udp || tcp):
		return fmt.Errorf("mode %s does not support -streams", o.Mode)
	case o.BusyPoll != 0 && tcp:
		return fmt.Errorf("mode %s does not support -busy-poll", o.Mode)
	case o.ZeroSum && (udp || tcp || mpi || o.TCP):
		return fmt.Errorf("-zero-checksum requires mode sctp or an RDMA mode over SCTP (mode mpi always has it)")
	case o.Plain && o.Mode != "sctp":
		return fmt.Errorf("-interleave requires mode sctp")
	case o.Direct && o.Mode != "sctp":
		return fmt.Errorf("-encapsulate requires mode sctp")
	case o.Shared && o.Mode != "mpi":
		return fmt.Errorf("-shared requires mode mpi")
	case o.ZeroCopy && (o.Mode != "sctp" || o.Latency):
		return fmt.Errorf("-zerocopy requires mode sctp without -latency (the RDMA modes and mpi are always zero-copy)")
	case o.Rate > 0 && (mpi || o.Latency):
		return fmt.Errorf("-rate requires a mode that sends in one direction, other than mpi")
	}
	return nil
}
