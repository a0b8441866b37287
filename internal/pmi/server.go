package pmi

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits that a Server tells its clients and holds them to.
const (
	KeyMax     = 64
	ValueMax   = 1024
	MaxEntries = 1 << 20 // pairs in the key-value space of one job
)

// State is how far a rank has come with the protocol.
type State int

// States of a rank.
const (
	Absent      State = iota // has not spoken, and perhaps never will
	Initialized              // between init and finalize
	Finalized                // took leave
)

// AbortError is what ended a job that a rank asked to end.
type AbortError struct {
	Rank int
	Code int    // the exit code it asked for
	Msg  string // its reason, may be empty
}

func (e *AbortError) Error() string {
	if e.Msg == "" {
		return fmt.Sprintf("rank %d aborted the job with code %d", e.Rank, e.Code)
	}
	return fmt.Sprintf("rank %d aborted the job with code %d: %s", e.Rank, e.Code, e.Msg)
}

// Server is the launcher's side for the ranks of one job. Its methods are safe
// for concurrent use.
type Server struct {
	size int
	name string

	// OnBarrier, if it is set before the first rank is served, is called when
	// the ranks have passed their nth barrier. It must not call the Server.
	OnBarrier func(n int)

	// OnSpawn, if it is set before the first rank is served, starts processes for
	// a rank. It returns an error if the request makes no sense.
	OnSpawn func(rank int, s *Spawn) (*Spawned, error)

	// OnReport, if it is set before the first rank is served, is told what a rank
	// says about another one.
	OnReport func(rank int, r Report)

	// Names are those that ranks publish; nil if they cannot. Several servers may
	// have the same.
	Names *Names

	// Universe is how many processes there is room for; 0: the ranks.
	Universe int
	// AppNums is which command each rank runs; nil: all the same.
	AppNums []int

	mu      sync.Mutex // guards all below
	kvs     map[string]string
	states  []State
	inside  []bool                // ranks in the barrier
	dead    []string              // why a rank failed, by rank; empty: it did not
	others  []string              // lines about deaths in other groups
	watches map[int]*replies      // ranks that want to know of failures
	asked   map[int]chan<- string // who waits for the answer of a rank, see Blocked
	serving []chan struct{}       // closed when the connection of a rank has ended; nil: it has none
	gate    chan struct{}         // closed when the barrier opens
	opened  int                   // how often it has
	abort   *AbortError
	aborted chan struct{}
}

// NewServer returns a server for a job of size ranks. name names its key-value
// space and must contain neither spaces nor an equals sign.
func NewServer(size int, name string) *Server {
	return &Server{
		size: size, name: name,
		kvs:     make(map[string]string),
		states:  make([]State, size),
		inside:  make([]bool, size),
		dead:    make([]string, size),
		serving: make([]chan struct{}, size),
		watches: make(map[int]*replies),
		asked:   make(map[int]chan<- string),
		gate:    make(chan struct{}),
		aborted: make(chan struct{}),
	}
}

// State returns how far a rank has come.
func (s *Server) State(rank int) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[rank]
}

// Aborted returns a channel that is closed when a rank asks to end the job.
func (s *Server) Aborted() <-chan struct{} { return s.aborted }

// AbortReason returns the abort that ended the job, or nil.
func (s *Server) AbortReason() *AbortError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.abort
}

// Serve answers one rank until it finalizes, its connection ends or ctx is
// done. It returns nil after a finalize and when the rank never spoke. It
// closes conn.
func (s *Server) Serve(ctx context.Context, rank int, conn io.ReadWriteCloser) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	return s.serve(ctx, rank, conn, bufio.NewReaderSize(conn, MaxLine))
}

func (s *Server) serve(ctx context.Context, rank int, conn io.Writer, r *bufio.Reader) error {
	w := &replies{w: conn}
	over := make(chan struct{})
	defer close(over)
	s.mu.Lock()
	s.serving[rank] = over
	s.mu.Unlock()
	defer s.unwatch(rank)
	for {
		m, err := readMessage(r)
		if err != nil {
			if s.State(rank) != Initialized && !errors.Is(err, ErrProtocol) {
				return nil
			}
			return fmt.Errorf("rank %d: %w", rank, err)
		}
		var reply string
		if m.cmd == "spawn" {
			reply, err = s.spawn(rank, r)
		} else {
			reply, err = s.answer(ctx, rank, m)
		}
		if err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
		if reply == "" {
			continue
		}
		if err := w.line(reply); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
		if m.cmd == cmdWatch {
			s.watch(rank, w)
		}
		if m.cmd == "finalize" {
			return nil
		}
	}
}

// Drain is called when the process of a rank has ended. It waits until the Server has read everything that the
// rank has sent, but no longer than limit: another process may hold the connection open.
func (s *Server) Drain(rank int, limit time.Duration) {
	s.mu.Lock()
	over := s.serving[rank]
	if s.inside[rank] {
		over = nil // nothing is read before the barrier opens
	}
	s.mu.Unlock()
	if over == nil {
		return
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-over:
	case <-t.C:
	}
}

// answer carries one command out and returns the reply line.
func (s *Server) answer(ctx context.Context, rank int, m message) (string, error) {
	switch m.cmd {
	case "init":
		s.setState(rank, Initialized)
		if m.args["pmi_version"] != "1" {
			return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1", nil
		}
		return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0", nil
	case "get_maxes":
		return fmt.Sprintf("cmd=maxes kvsname_max=256 keylen_max=%d vallen_max=%d", KeyMax, ValueMax), nil
	case "get_appnum":
		n := 0
		if s.AppNums != nil {
			n = s.AppNums[rank]
		}
		return "cmd=appnum appnum=" + strconv.Itoa(n), nil
	case "get_universe_size":
		return "cmd=universe_size size=" + strconv.Itoa(cmp.Or(s.Universe, s.size)), nil
	case "get_my_kvsname":
		return "cmd=my_kvsname kvsname=" + s.name, nil
	case "put":
		return "cmd=put_result " + result(s.put(m.args["kvsname"], m.args["key"], m.args["value"])), nil
	case "get":
		value, err := s.get(m.args["kvsname"], m.args["key"])
		if err != nil {
			return "cmd=get_result " + result(err), nil
		}
		return "cmd=get_result rc=0 msg=success value=" + value, nil
	case "barrier_in":
		if err := s.barrier(ctx, rank); err != nil {
			return "", err
		}
		return "cmd=barrier_out rc=0", nil
	case "finalize":
		s.setState(rank, Finalized)
		return "cmd=finalize_ack rc=0", nil
	case cmdWatch:
		return "cmd=" + cmdWatch + " rc=0", nil
	case cmdWaits:
		s.waits(rank, m.args[textKey])
		return "", nil
	case cmdPeer:
		return "", s.report(rank, m)
	case "abort":
		s.setAbort(rank, m)
		return "", nil
	}
	if isNames(m.cmd) && s.Names != nil {
		return s.Names.answer(m), nil
	}
	return "", fmt.Errorf("%w: unknown command %q", ErrProtocol, clip(m.cmd))
}

// result renders the outcome of a command.
func result(err error) string {
	if err != nil {
		return "rc=-1 msg=" + strings.ReplaceAll(oneLine(err.Error()), " ", "_")
	}
	return "rc=0 msg=success"
}

func (s *Server) put(space, key, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case space != s.name:
		return errors.New("no such key-value space")
	case key == "" || len(key) > KeyMax:
		return errors.New("unfit key")
	case len(value) > ValueMax:
		return errors.New("value too long")
	case len(s.kvs) >= MaxEntries:
		return errors.New("key-value space full")
	}
	s.kvs[key] = value
	return nil
}

func (s *Server) get(space, key string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if space != s.name {
		return "", errors.New("no such key-value space")
	}
	value, ok := s.kvs[key]
	if !ok {
		return "", errors.New("no such key")
	}
	return value, nil
}

// barrier blocks until every rank that has not failed is in it.
func (s *Server) barrier(ctx context.Context, rank int) error {
	s.mu.Lock()
	gate := s.gate
	s.inside[rank] = true
	s.openGate()
	s.mu.Unlock()
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openGate ends the barrier if it is complete. mu is held.
func (s *Server) openGate() {
	entered := false
	for i, in := range s.inside {
		if !in && s.dead[i] == "" {
			return
		}
		entered = entered || in
	}
	if !entered {
		return
	}
	clear(s.inside)
	close(s.gate)
	s.gate = make(chan struct{})
	if s.opened++; s.OnBarrier != nil {
		s.OnBarrier(s.opened)
	}
}

func (s *Server) setState(rank int, st State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[rank] = st
}

// failure returns the code of an abort, or 1 if a process that exits with it would seem to have
// succeeded, because its status is the low eight bits.
func failure(code int) int {
	if code&0xff == 0 {
		return 1
	}
	return code
}

// setAbort records the first abort; later ones are echoes of it.
func (s *Server) setAbort(rank int, m message) {
	code, _ := strconv.Atoi(m.args["exitcode"])
	code = failure(code)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abort == nil {
		s.abort = &AbortError{Rank: rank, Code: code, Msg: m.args[textKey]}
		close(s.aborted)
	}
}
