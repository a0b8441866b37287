package netem

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/units"
)

// Params describes the way out of one host into one network. The way from the
// switch into a host has the same rate and queue. The zero Params is a perfect
// network.
type Params struct {
	Rate      float64       // bits per second; 0 is unlimited
	Delay     time.Duration // one way, beyond the time that the bits take
	Jitter    time.Duration // up to this much more, evenly distributed, in order
	Loss      float64       // probability that a packet is lost, 0 … 1
	Burst     float64       // mean length of a burst of losses in packets; at least 1
	Duplicate float64       // probability that a packet arrives twice
	Reorder   float64       // probability that a packet is held back behind later ones
	Corrupt   float64       // probability that a bit of a packet is flipped
	MTU       int           // longer packets are dropped; 0 is unlimited
	Queue     int           // bytes waiting for the line; 0 is DefaultQueue
}

// DefaultQueue is the queue of a port unless Params says otherwise.
const DefaultQueue = 256 << 10

// maxDelay bounds Delay and Jitter.
const maxDelay = time.Minute

// Set changes one parameter by its name, as the command line and scenarios
// write it: rate 1gbit, delay 25us, jitter, loss 1%, burst 4, dup, reorder,
// corrupt, mtu 1500, queue 256KiB.
func (p *Params) Set(name, value string) error {
	var err error
	switch name {
	case "rate":
		p.Rate, err = ParseRate(value)
	case "delay":
		p.Delay, err = parseDelay(value)
	case "jitter":
		p.Jitter, err = parseDelay(value)
	case "loss":
		p.Loss, err = parsePart(value)
	case "dup":
		p.Duplicate, err = parsePart(value)
	case "reorder":
		p.Reorder, err = parsePart(value)
	case "corrupt":
		p.Corrupt, err = parsePart(value)
	case "burst":
		if p.Burst, err = strconv.ParseFloat(value, 64); err == nil && !(p.Burst >= 1 && p.Burst <= 1e6) {
			err = fmt.Errorf("burst %q: want 1 to 1000000 packets", value)
		}
	case "mtu":
		if p.MTU, err = strconv.Atoi(value); err == nil && (p.MTU < 68 || p.MTU > 65535) {
			err = fmt.Errorf("mtu %q: want 68 to 65535", value)
		}
	case "queue":
		var n int64
		if n, err = units.ParseBytes(value); err == nil && (n < 1 || n > math.MaxInt32) {
			err = fmt.Errorf("queue %q: want 1 byte to 2 GiB", value)
		}
		p.Queue = int(n)
	default:
		err = fmt.Errorf("unknown parameter %q", name)
	}
	return err
}

// ParseRate parses bits per second: 1gbit, 100mbit, 64kbit, 1000000.
func ParseRate(s string) (float64, error) {
	number, unit := strings.ToLower(s), 1.0
	for _, suffix := range []struct {
		text string
		unit float64
	}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}} {
		if rest, ok := strings.CutSuffix(number, suffix.text); ok {
			number, unit = rest, suffix.unit
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if v *= unit; err != nil || !(v >= 0 && v <= 1e13) {
		return 0, fmt.Errorf("rate %q: want bits per second, such as 1gbit or 100mbit", s)
	}
	return v, nil
}

func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && (d < 0 || d > maxDelay) {
		err = fmt.Errorf("delay %q: want 0 to %v", s, maxDelay)
	}
	return d, err
}

// parsePart parses a probability: 1% or 0.01.
func parsePart(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is no probability (write 1%% or 0.01)", s)
	}
	return v, nil
}
