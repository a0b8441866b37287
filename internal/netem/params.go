package netem

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/units"
)

// Params describes the way out of one host into one network, and how fast the
// way from the switch into that host is. The zero Params is a perfect network.
type Params struct {
	Rate      float64       // bits per second; 0 is unlimited
	Delay     time.Duration // one way, beyond the time that the bits take
	Jitter    time.Duration // up to this much more, evenly distributed, in order
	Loss      float64       // probability that a packet is lost, 0 … 1
	Burst     float64       // mean length of a burst of losses in packets; at least 1
	Gilbert   Gilbert       // if not zero, losses by this instead of Loss and Burst
	Duplicate float64       // probability that a packet arrives twice
	Reorder   float64       // probability that a packet is held back behind later ones
	Corrupt   float64       // probability that a bit of a packet is flipped
	MTU       int           // longer packets are dropped; 0 is unlimited
	Queue     int           // bytes waiting for the line; 0 is DefaultQueue
	DownRate  float64       // bits per second into the host; 0 is Rate
	DownQueue int           // bytes waiting for the line into the host; 0 is Queue
}

// Gilbert is the loss model of E. N. Gilbert (1960) and E. O. Elliott (1963): a
// link is in a good or a bad state, which may change with each packet, and each
// state loses packets with a probability of its own. The zero Gilbert is none.
type Gilbert struct {
	Enter, Leave      float64 // probability per packet to enter and to leave the bad state
	LossBad, LossGood float64 // probability that a packet is lost in each state
}

// Mean returns the share of packets that is lost in the long run.
func (g Gilbert) Mean() float64 {
	if g.Enter == 0 {
		return g.LossGood
	}
	bad := g.Enter / (g.Enter + g.Leave)
	return bad*g.LossBad + (1-bad)*g.LossGood
}

// parseGilbert parses P,R[,BAD[,GOOD]], as tc-netem(8) takes behind "loss
// gemodel"; in the bad state all packets are lost unless BAD says otherwise, in
// the good state none. 0 turns the model off.
func parseGilbert(s string) (Gilbert, error) {
	if s == "0" {
		return Gilbert{}, nil
	}
	parts := strings.Split(s, ",")
	v := [4]float64{2: 1}
	if len(parts) < 2 || len(parts) > len(v) {
		return Gilbert{}, fmt.Errorf("gemodel %q: want P,R[,BAD[,GOOD]]", s)
	}
	for i, part := range parts {
		var err error
		if v[i], err = parsePart(part); err != nil {
			return Gilbert{}, fmt.Errorf("gemodel %q: %w", s, err)
		}
	}
	return Gilbert{v[0], v[1], v[2], v[3]}, nil
}

// DefaultQueue is the queue of a port unless Params says otherwise.
const DefaultQueue = 256 << 10

// maxDelay bounds Delay and Jitter.
const maxDelay = time.Minute

// Set changes one parameter by its name, as the command line and scenarios
// write it: rate 1gbit, delay 25us, jitter, loss 1%, burst 4, dup, reorder,
// corrupt, mtu 1500, queue 256KiB, gemodel 1%,25%, downrate, downqueue.
func (p *Params) Set(name, value string) error {
	var err error
	switch name {
	case "rate":
		p.Rate, err = units.ParseRate(value)
	case "downrate":
		p.DownRate, err = units.ParseRate(value)
	case "gemodel":
		p.Gilbert, err = parseGilbert(value)
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
		p.Queue, err = parseQueue(value)
	case "downqueue":
		p.DownQueue, err = parseQueue(value)
	default:
		err = fmt.Errorf("unknown parameter %q", name)
	}
	return err
}

// ParseLink changes p as a description of a link says: a rate, a delay, and pairs of the name
// and the value of a parameter, in any order, as in "1gbit 9ms loss 1% queue 1MiB".
func (p *Params) ParseLink(s string) error {
	words := strings.Fields(s)
	if len(words) == 0 {
		return errors.New(`want a link, such as "1gbit 9ms loss 1%"`)
	}
	for len(words) > 0 {
		var name, value string
		n := 1
		switch _, err := time.ParseDuration(words[0]); {
		case strings.HasSuffix(strings.ToLower(words[0]), "bit"):
			name, value = "rate", words[0]
		case err == nil:
			name, value = "delay", words[0]
		case len(words) == 1:
			return fmt.Errorf("%q: %q is no rate, no delay and no parameter with a value", s, words[0])
		default:
			name, value, n = words[0], words[1], 2
		}
		if err := p.Set(name, value); err != nil {
			return fmt.Errorf("%q: %w", s, err)
		}
		words = words[n:]
	}
	return nil
}

func parseQueue(s string) (int, error) {
	n, err := units.ParseBytes(s)
	if err == nil && (n < 1 || n > math.MaxInt32) {
		err = fmt.Errorf("queue %q: want 1 byte to 2 GiB", s)
	}
	return int(n), err
}

func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && (d < 0 || d > maxDelay) {
		err = fmt.Errorf("delay %q: want 0 to %v", s, maxDelay)
	}
	return d, err
}

// portOnly are the parameters that belong to a host's port: they are the same for
// all that it sends to.
var portOnly = []string{"rate", "queue", "downrate", "downqueue"}

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
