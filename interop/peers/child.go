package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/weftstack/weft/internal/bench"
)

// envRole makes this program one end of a measurement of a Go stack. Its value
// is "server STACK LOAD SIZE" or "client STACK LOAD SIZE ADDRESS".
const envRole = "WEFT_PEERS_ROLE"

// counts is what an end answers to each line on its standard input, as JSON. The
// round trips are those since the line before.
type counts struct {
	Bytes  uint64  `json:"bytes"`
	Msgs   uint64  `json:"msgs"`
	CPU    float64 `json:"cpu"`
	Allocs uint64  `json:"allocs"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`
	Trips  uint64  `json:"trips"`
}

// endpoint is a connection of a Go stack. Both calls block. Send sends size
// bytes, recv receives some, of at most one message.
type endpoint interface {
	send(p []byte) error
	recv(p []byte) (int, error)
}

// streamEnd is an endpoint of a stack whose streams are read and written.
type streamEnd struct{ io.ReadWriter }

func (e streamEnd) send(p []byte) error {
	_, err := e.Write(p)
	return err
}

func (e streamEnd) recv(p []byte) (int, error) { return e.Read(p) }

// stack opens connections of a Go stack. listen returns the address for dial,
// and a function that waits for the first connection.
type stack struct {
	listen func() (addr string, accept func() (endpoint, error), err error)
	dial   func(addr string) (endpoint, error)
}

func stacks() map[string]stack {
	return map[string]stack{"pion": pionStack(), "quic": quicStack()}
}

// child is one end of a measurement.
func child(role string) error {
	words := strings.Fields(role)
	if len(words) < 4 {
		return fmt.Errorf("role %q is not complete", role)
	}
	st, ok := stacks()[words[1]]
	size, err := strconv.Atoi(words[3])
	if !ok || err != nil || size < 1 {
		return fmt.Errorf("role %q makes no sense", role)
	}
	c := &worker{size: size, hist: hdrhistogram.New(1, int64(time.Minute), 3)}
	go c.answer()
	var e endpoint
	if words[0] == "server" {
		addr, accept, err := st.listen()
		if err != nil {
			return err
		}
		fmt.Printf("ready %s\n", addr)
		if e, err = accept(); err != nil {
			return err
		}
	} else {
		if e, err = st.dial(words[4]); err != nil {
			return err
		}
		fmt.Println("ready")
	}
	return c.work(e, words[0] == "server", words[2] == "trip")
}

// worker loads a connection and counts.
type worker struct {
	size  int
	bytes atomic.Uint64
	mu    sync.Mutex
	hist  *hdrhistogram.Histogram // guarded by mu
}

// answer answers each line with the counts, and ends the process with the last.
func (c *worker) answer() {
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
		metrics.Read(sample)
		n := c.bytes.Load()
		c.mu.Lock()
		out.Encode(counts{
			Bytes: n, Msgs: n / uint64(c.size), CPU: bench.CPUSeconds(), Allocs: sample[0].Value.Uint64(),
			P50: float64(c.hist.ValueAtQuantile(50)) / 1e3, P99: float64(c.hist.ValueAtQuantile(99)) / 1e3, Trips: uint64(c.hist.TotalCount()),
		})
		c.hist.Reset()
		c.mu.Unlock()
	}
	os.Exit(0)
}

func (c *worker) work(e endpoint, server, trip bool) error {
	buf := make([]byte, max(c.size, 64<<10))
	msg := buf[:c.size]
	read := func() error { // a whole message
		for got := 0; got < c.size; {
			n, err := e.recv(buf[got:])
			if err != nil {
				return err
			}
			got += n
			c.bytes.Add(uint64(n))
		}
		return nil
	}
	for {
		start := time.Now()
		var err error
		switch {
		case server && !trip:
			var n int
			n, err = e.recv(buf)
			c.bytes.Add(uint64(n))
		case server:
			if err = read(); err == nil {
				err = e.send(msg)
			}
		case !trip:
			err = e.send(msg)
		default:
			if err = e.send(msg); err == nil {
				err = read()
			}
			c.mu.Lock()
			c.hist.RecordValue(int64(time.Since(start)))
			c.mu.Unlock()
		}
		if err != nil {
			if server {
				return nil // the client has gone
			}
			return err
		}
	}
}
