package relay

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/sctp/relay/frame"
)

const (
	// DefaultClass is the name of the class of jobs that are in no other one.
	DefaultClass = "default"
	// MaxClasses bounds the classes of a gateway, MaxWeight their weights.
	MaxClasses, MaxWeight = 64, 1000
	// MinRate is the smallest rate limit, in bytes a second.
	MinRate = 10_000

	// quantum is how many bytes a class of weight 1 may send when its turn comes: at least a
	// frame, so that each second turn sends one.
	quantum = frame.MaxSize
	// rateBurst is for how long a class that was idle may send without regard to its rate, and
	// minBurst how many bytes at least.
	rateBurst = 10 * time.Millisecond
	minBurst  = 2 * frame.MaxSize
	// rateTick is the shortest sleep of a leg whose frames wait for their rate.
	rateTick = time.Millisecond
)

// Class is a traffic class: how its jobs share the legs between gateways with others.
type Class struct {
	// Name tells classes apart in GatewayStats and JobOptions. That of DefaultClass has all
	// jobs that no class names.
	Name string
	// Jobs are the job numbers of the class; see JobOptions, too.
	Jobs []JobRange
	// Weight is the share of a leg that the class has when others have frames to send as well: in
	// proportion to their weights, whatever the number of flows (default 1, at most MaxWeight).
	Weight int
	// Rate limits what the gateway sends for the class to each other gateway, in bytes of frames
	// a second, over all associations with it. 0 is no limit, MinRate the lowest.
	Rate int64
}

// JobRange are the job numbers from First to Last.
type JobRange struct{ First, Last uint32 }

// JobOptions are parameters of a job in a gateway.
type JobOptions struct {
	// Class is the name of its class. The default, "", is the one that has its number.
	Class string
}

// checkClasses checks classes, and puts DefaultClass first.
func (c *GatewayConfig) checkClasses() error {
	classes := []Class{{Name: DefaultClass, Weight: 1}}
	if len(c.Classes) > MaxClasses {
		return fmt.Errorf("%w: %d classes, want at most %d", ErrConfig, len(c.Classes), MaxClasses)
	}
	for _, k := range c.Classes {
		def(&k.Weight, 1)
		switch {
		case k.Name == "":
			return fmt.Errorf("%w: class without a name", ErrConfig)
		case k.Weight < 1 || k.Weight > MaxWeight:
			return fmt.Errorf("%w: class %s: weight %d, want 1 to %d", ErrConfig, k.Name, k.Weight, MaxWeight)
		case k.Rate != 0 && k.Rate < MinRate:
			return fmt.Errorf("%w: class %s: rate of %d bytes a second, want at least %d", ErrConfig, k.Name, k.Rate, MinRate)
		case k.Name == DefaultClass && len(k.Jobs) > 0:
			return fmt.Errorf("%w: class %s has the jobs that no class names, and no others", ErrConfig, k.Name)
		}
		for _, r := range k.Jobs {
			if r.First == 0 || r.Last < r.First || r.Last > frame.MaxJob {
				return fmt.Errorf("%w: class %s: jobs %d to %d, want numbers from 1 to %d", ErrConfig, k.Name, r.First, r.Last, frame.MaxJob)
			}
			for _, o := range classes {
				for _, q := range o.Jobs {
					if r.First <= q.Last && q.First <= r.Last {
						return fmt.Errorf("%w: jobs %d to %d of class %s overlap with %d to %d of class %s",
							ErrConfig, r.First, r.Last, k.Name, q.First, q.Last, o.Name)
					}
				}
			}
		}
		if k.Name == DefaultClass && len(classes[0].Jobs) == 0 {
			classes[0].Weight, classes[0].Rate = k.Weight, k.Rate
			continue
		}
		for _, o := range classes {
			if o.Name == k.Name {
				return fmt.Errorf("%w: class %s is listed twice", ErrConfig, k.Name)
			}
		}
		classes = append(classes, k)
	}
	c.Classes = classes
	return nil
}

// classOf returns the index of the class of a job.
func (c *GatewayConfig) classOf(job uint32, name string) (uint8, error) {
	for i, k := range c.Classes {
		if name != "" && k.Name == name {
			return uint8(i), nil
		}
		for _, r := range k.Jobs {
			if name == "" && r.First <= job && job <= r.Last {
				return uint8(i), nil
			}
		}
	}
	if name != "" {
		return 0, fmt.Errorf("%w: job %d: no class %q", ErrConfig, job, name)
	}
	return 0, nil
}

// bucket is a token bucket that may go into debt by one frame.
type bucket struct {
	rate, burst float64       // bytes a second, and bytes; a rate of 0 is no limit
	tokens      float64       // bytes that may be sent
	at          time.Duration // when tokens was right
}

func newBucket(rate int64) bucket {
	b := bucket{rate: float64(rate), burst: max(minBurst, float64(rate)*rateBurst.Seconds())}
	b.tokens = b.burst
	return b
}

// wait returns for how long from now on nothing may be sent.
func (b *bucket) wait(now time.Duration) time.Duration {
	if b.rate == 0 {
		return 0
	}
	if now > b.at {
		b.tokens = min(b.burst, b.tokens+b.rate*(now-b.at).Seconds())
		b.at = now
	}
	if b.tokens > 0 {
		return 0
	}
	return max(rateTick, time.Duration(-b.tokens/b.rate*float64(time.Second)))
}

// trunk is what the legs to another gateway have in common: rates.
type trunk struct {
	classes []classCounters // of the gateway
	limited bool            // any rate is set
	began   time.Time       // that the times of the buckets count from

	mu      sync.Mutex
	all     bucket
	byClass []bucket
}

// classCounters count what was sent for a class to other gateways.
type classCounters struct {
	frames, bytes, waits atomic.Uint64
}

func newTrunk(cfg *GatewayConfig, rate int64, counters []classCounters) *trunk {
	t := &trunk{classes: counters, all: newBucket(rate), limited: rate != 0, began: time.Now()}
	for _, k := range cfg.Classes {
		t.byClass = append(t.byClass, newBucket(k.Rate))
		t.limited = t.limited || k.Rate != 0
	}
	return t
}

// wait returns for how long a class may not send.
func (t *trunk) wait(class uint8, now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.all.wait(now), t.byClass[class].wait(now))
}

// sent counts a frame of n bytes.
func (t *trunk) sent(class uint8, n int) {
	t.classes[class].frames.Add(1)
	t.classes[class].bytes.Add(uint64(n))
	if t.limited {
		t.mu.Lock()
		t.all.tokens -= float64(n)
		t.byClass[class].tokens -= float64(n)
		t.mu.Unlock()
	}
}

// ClassStats describes a traffic class of a gateway.
type ClassStats struct {
	Name   string
	Weight int
	Rate   int64 // bytes a second; 0: no limit
	// Frames and Bytes were sent to other gateways. Waits counts how often a leg had nothing to send but
	// frames that had to wait for a rate, of this class among others.
	Frames, Bytes, Waits uint64
}

func (g *Gateway) classStats() []ClassStats {
	s := make([]ClassStats, len(g.cfg.Classes))
	for i, k := range g.cfg.Classes {
		n := &g.classes[i]
		s[i] = ClassStats{
			Name: k.Name, Weight: k.Weight, Rate: k.Rate,
			Frames: n.frames.Load(), Bytes: n.bytes.Load(), Waits: n.waits.Load(),
		}
	}
	return s
}
