package sctp

import (
	"errors"
	"fmt"
	"maps"
	"time"

	weft "github.com/weftstack/weft/sctp"
)

// interleavingSettings tells how the streams share an association.
type interleavingSettings struct {
	roundRobin bool
	weights    map[uint16]uint16
}

// scheduler returns weft's scheduler for the settings.
func (s *interleavingSettings) scheduler() weft.Scheduler {
	if s.roundRobin {
		return weft.RoundRobin
	}
	return weft.WeightedFair
}

// StreamSchedulerChunk is a chunk as a stream scheduler sees it.
type StreamSchedulerChunk interface {
	StreamIdentifier() uint16
	UserDataLen() int
	IsStreamReset() bool

	chunk()
}

// InterleavingStreamScheduler is a stream scheduler of the program's. See
// WithInterleavingStreamSchedulerFactory.
type InterleavingStreamScheduler interface {
	// Reset forgets all chunks.
	Reset()
	Push(StreamSchedulerChunk)
	Peek() StreamSchedulerChunk
	Pop(StreamSchedulerChunk) error
}

// InterleavingStreamSchedulerFactory makes a stream scheduler.
type InterleavingStreamSchedulerFactory func() InterleavingStreamScheduler

// AssociationInterleavingOption is an option of WithInterleavingOptions.
type AssociationInterleavingOption func(*interleavingSettings) error

// WithInterleavingOptions tells how the streams share an association. The default is weighted fair
// queueing, also if messages are not interleaved.
func WithInterleavingOptions(opts ...AssociationInterleavingOption) AssociationOption {
	return option(func(c *Config) error {
		var s interleavingSettings
		if c.interleaving != nil {
			s = *c.interleaving
			s.weights = maps.Clone(s.weights)
		}
		for _, o := range opts {
			if o == nil {
				continue
			}
			if err := o(&s); err != nil {
				return err
			}
		}
		c.interleaving = &s
		return nil
	})
}

// WithInterleavingRoundRobinScheduler serves the streams in turn, a fragment each.
func WithInterleavingRoundRobinScheduler() AssociationInterleavingOption {
	return func(s *interleavingSettings) error {
		s.roundRobin = true
		return nil
	}
}

// WithInterleavingWeightedFairQueueingScheduler gives each stream its share of the bytes by its weight (RFC 8260,
// Section 3.6).
func WithInterleavingWeightedFairQueueingScheduler() AssociationInterleavingOption {
	return func(s *interleavingSettings) error {
		s.roundRobin = false
		return nil
	}
}

// WithInterleavingWeightedFairQueueingWeight sets the weight of a stream, which must not be 0.
func WithInterleavingWeightedFairQueueingWeight(streamID uint16, weight uint16) AssociationInterleavingOption {
	return func(s *interleavingSettings) error {
		if weight == 0 {
			return fmt.Errorf("%w: weight of stream %d is 0", errOption, streamID)
		}
		if s.weights == nil {
			s.weights = make(map[uint16]uint16)
		}
		s.weights[streamID] = weight
		s.roundRobin = false
		return nil
	}
}

// WithInterleavingStreamSchedulerFactory would have a scheduler of the program's choose the chunks.
// It is not supported: Client and Server return an error that matches errors.ErrUnsupported.
func WithInterleavingStreamSchedulerFactory(newScheduler InterleavingStreamSchedulerFactory) AssociationInterleavingOption {
	return func(*interleavingSettings) error {
		if newScheduler == nil {
			return fmt.Errorf("%w: no stream scheduler", errOption)
		}
		return fmt.Errorf("sctp: stream scheduler of the program: %w", errors.ErrUnsupported)
	}
}

// rackSettings is what the options of RACK set: nothing, because weft derives these times from what
// it measures (RFC 8985).
type rackSettings struct{}

// AssociationRACKOption is an option of WithRACKOptions.
type AssociationRACKOption func(*rackSettings) error

// WithRACKOptions checks its options, which have no effect.
func WithRACKOptions(opts ...AssociationRACKOption) AssociationOption {
	return option(func(*Config) error {
		var none rackSettings
		for _, o := range opts {
			if o == nil {
				continue
			}
			if err := o(&none); err != nil {
				return err
			}
		}
		return nil
	})
}

// WithRackMinRTTWnd takes how long a minimum of the round-trip time holds, which must be positive. It
// has no effect.
func WithRackMinRTTWnd(rackMinRTTWnd time.Duration) AssociationRACKOption {
	return rackTime("RackMinRTTWnd", rackMinRTTWnd, 1)
}

// WithRackReoWndFloor takes the smallest reordering window, which must not be negative. It has no
// effect.
func WithRackReoWndFloor(rackReoWndFloor time.Duration) AssociationRACKOption {
	return rackTime("RackReoWndFloor", rackReoWndFloor, 0)
}

// WithRackWCDelAck takes the longest delay of an acknowledgement, which must be positive. It has no
// effect.
func WithRackWCDelAck(rackWCDelAck time.Duration) AssociationRACKOption {
	return rackTime("RackWCDelAck", rackWCDelAck, 1)
}

func rackTime(name string, d, least time.Duration) AssociationRACKOption {
	return func(*rackSettings) error {
		if d < least {
			return fmt.Errorf("%w: %s is %v", errOption, name, d)
		}
		return nil
	}
}
