package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// rawSize is the size of the messages without SCTP in bytes.
	rawSize = 1200
	// echoSize is the size of the messages that are sent back in bytes.
	echoSize = 64
	// warmUp is the part of the time that passes before the measurement begins.
	warmUp = 4
	// lowWait is how long a writer waits for the amount to fall before it looks again.
	lowWait = 100 * time.Millisecond
)

// result is what one run has measured.
type result struct {
	Below        string  `json:"below"` // "weft" or "pion"
	Conn         string  `json:"conn"`
	Mbps         float64 `json:"mbit_per_s"`
	AllocsPerMB  float64 `json:"allocs_per_mb"` // of 1,000,000 bytes, both ends and all below
	KBPerMB      float64 `json:"kb_allocated_per_mb"`
	Echoes       int     `json:"echoes,omitempty"`
	EchoP50      float64 `json:"echo_p50_us,omitempty"`
	EchoP99      float64 `json:"echo_p99_us,omitempty"`
	AllocsPerOne float64 `json:"allocs_per_echo,omitempty"`
}

// measure measures a kind of connection.
func (o *options) measure(kind string) (r result, err error) {
	r = result{Below: below(), Conn: kind}
	if o.raw {
		r.Below = "nothing"
		return r, o.measureRaw(kind, &r)
	}
	if err := o.throughput(kind, &r); err != nil {
		return r, fmt.Errorf("%s: throughput: %w", kind, err)
	}
	if o.echo {
		if err := o.echoes(kind, &r); err != nil {
			return r, fmt.Errorf("%s: echo: %w", kind, err)
		}
	}
	return r, nil
}

// count measures how many bytes arrive, and what is allocated for them.
func (o *options) count(r *result, received *atomic.Int64, failed <-chan error) error {
	wait := func(d time.Duration) error {
		select {
		case err := <-failed:
			return err
		case <-time.After(d):
			return nil
		}
	}
	if err := wait(o.time / warmUp); err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, n := time.Now(), received.Load()
	err := wait(o.time)
	d := time.Since(start)
	n = received.Load() - n
	runtime.ReadMemStats(&after)
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("nothing arrived")
	}
	mb := float64(n) / 1e6
	r.Mbps = 8 * mb / d.Seconds()
	r.AllocsPerMB = float64(after.Mallocs-before.Mallocs) / mb
	r.KBPerMB = float64(after.TotalAlloc-before.TotalAlloc) / mb / 1e3
	return nil
}

// throughput sends one way. It keeps between half a window and a window of bytes waiting.
func (o *options) throughput(kind string, r *result) error {
	a, b, end, err := o.open(kind)
	if err != nil {
		return err
	}
	low := make(chan struct{}, 1)
	a.SetBufferedAmountLowThreshold(uint64(o.window / 2))
	a.OnBufferedAmountLow(func() {
		select {
		case low <- struct{}{}:
		default:
		}
	})
	failed := make(chan error, 2)
	stop := make(chan struct{})
	var received atomic.Int64
	go func() {
		buf := make([]byte, max(o.size, 1<<16))
		for {
			n, err := b.Read(buf)
			if err != nil {
				failed <- err
				return
			}
			received.Add(int64(n))
		}
	}()
	go func() {
		msg := make([]byte, o.size)
		t := time.NewTimer(0)
		for {
			for a.BufferedAmount() > uint64(o.window) {
				t.Reset(lowWait)
				select {
				case <-low:
				case <-t.C:
				case <-stop:
					return
				}
			}
			select {
			case <-stop:
				return
			default:
			}
			if _, err := a.Write(msg); err != nil {
				failed <- err
				return
			}
		}
	}()
	err = o.count(r, &received, failed)
	close(stop)
	end()
	return err
}

// echoes sends small messages there and back, one at a time.
func (o *options) echoes(kind string, r *result) error {
	a, b, end, err := o.open(kind)
	if err != nil {
		return err
	}
	defer end()
	go func() {
		buf := make([]byte, echoSize)
		for {
			n, err := b.Read(buf)
			if err != nil {
				return // a's read tells
			}
			if _, err := b.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	// A reader that waits for ever is ended with the association.
	watchdog := time.AfterFunc(2*o.time+openTimeout, end)
	defer watchdog.Stop()
	msg := make([]byte, echoSize)
	took := make([]time.Duration, 0, 1<<20)
	var before, after runtime.MemStats
	begin := time.Now().Add(o.time / warmUp)
	warm := false
	for {
		start := time.Now()
		if !warm && start.After(begin) {
			warm = true
			runtime.ReadMemStats(&before)
			continue
		}
		if warm && start.Sub(begin) > o.time && len(took) > 0 {
			break
		}
		if _, err := a.Write(msg); err != nil {
			return err
		}
		if _, err := a.Read(msg); err != nil {
			return err
		}
		if warm && len(took) < cap(took) {
			took = append(took, time.Since(start))
		}
	}
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	us := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))]) / float64(time.Microsecond) }
	r.Echoes, r.EchoP50, r.EchoP99 = len(took), us(0.5), us(0.99)
	r.AllocsPerOne = float64(after.Mallocs-before.Mallocs) / float64(len(took))
	return nil
}

// measureRaw sends messages over the connection as fast as it takes them, and counts what arrives.
func (o *options) measureRaw(kind string, r *result) error {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	a, b, err := connPair(ctx, kind, o.link)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	var stopped atomic.Bool
	var received atomic.Int64
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := b.Read(buf)
			if err != nil {
				failed <- err
				return
			}
			received.Add(int64(n))
		}
	}()
	go func() {
		msg := make([]byte, rawSize)
		for !stopped.Load() {
			if _, err := a.Write(msg); err != nil {
				failed <- err
				return
			}
		}
	}()
	err = o.count(r, &received, failed)
	stopped.Store(true)
	a.Close()
	b.Close()
	return err
}
