package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/weftstack/weft/sctp/relay"
)

// Dial opens a connection to the endpoint of another process. request, of up to MaxRequest bytes, says what for. It
// waits for the answer. Errors: *RefusedError, ErrReset (the process cannot be reached), ErrLimit, ErrConfig,
// ErrClosed, and that of ctx, after which the other end learns that the connection is over.
func (e *Endpoint) Dial(ctx context.Context, to relay.Address, request []byte) (*Conn, error) {
	switch {
	case to == e.Address():
		return nil, fmt.Errorf("%w: %v is this process", ErrConfig, to)
	case len(request) > MaxRequest:
		return nil, fmt.Errorf("%w: request of %d bytes, at most %d", ErrConfig, len(request), MaxRequest)
	}
	for try := 1; ; try++ {
		c, err := e.dial(ctx, to, request)
		if try == 1 && errors.Is(err, relay.ErrRestarted) {
			continue // the flow was with a former life of the process
		}
		return c, err
	}
}

// dial opens a connection.
func (e *Endpoint) dial(ctx context.Context, to relay.Address, request []byte) (*Conn, error) {
	e.mu.Lock()
	c, err := e.open(to)
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s, err := c.f.sender()
	if err != nil {
		c.fail(err, CodeUnspecified, false)
		return nil, err
	}
	e.mu.Lock()
	c.s = s
	e.mu.Unlock()
	o := relay.SendOptions{PPID: ppidOf(kindOpen, c.generation), Header: []byte{version}}
	if err := s.Send(ctx, request, o); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else {
			err = fmt.Errorf("%w: %w", ErrReset, err)
		}
		c.fail(err, CodeUnspecified, true)
		return nil, err
	}
	watch, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		if err := s.Flush(watch); err != nil && watch.Err() == nil {
			c.fail(fmt.Errorf("%w: %w", ErrReset, err), CodeUnspecified, true)
		}
	}()
	select {
	case <-c.opened:
	case <-ctx.Done():
		c.fail(ctx.Err(), CodeUnspecified, true)
	}
	e.mu.Lock()
	err = c.err
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// open makes the connection for Dial. mu is held.
func (e *Endpoint) open(to relay.Address) (*Conn, error) {
	if e.closed {
		return nil, ErrClosed
	}
	if e.conns >= e.cfg.MaxConns {
		return nil, fmt.Errorf("%w: %d connections", ErrLimit, e.conns)
	}
	p := e.peer(to)
	if p == nil {
		return nil, fmt.Errorf("%w: %d processes", ErrLimit, maxPeers)
	}
	stream, ok := p.take()
	if !ok {
		return nil, fmt.Errorf("%w: all streams to %v are in use", ErrLimit, to)
	}
	return e.newConn(p.flow(stream), e.nextGeneration(), stateOpening), nil
}

// Request is a connection that another process opens. It must be accepted or refused.
type Request struct {
	c       *Conn
	request []byte
}

// Bytes returns the request.
func (r *Request) Bytes() []byte { return r.request }

// Origin returns the process that opens the connection.
func (r *Request) Origin() relay.Address { return r.c.f.p.addr }

// Accept answers, and returns the connection. Errors: that of ctx, ErrReset if the other end has given up, ErrClosed.
func (r *Request) Accept(ctx context.Context) (*Conn, error) {
	c := r.c
	if err := c.answer(ctx, kindAccept, []byte{version}); err != nil {
		return nil, err
	}
	e := c.e
	e.mu.Lock()
	err := c.err
	if err == nil {
		c.state = stateOpen
		e.counters.Accepted++
	}
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Refuse refuses the connection: Dial of the other end returns a *RefusedError with code and text, of which 512
// bytes are sent at most.
func (r *Request) Refuse(ctx context.Context, code Code, text string) error {
	err := r.c.answer(ctx, kindRefuse, append([]byte{byte(code)}, text[:min(len(text), maxText)]...))
	if err != nil {
		return err
	}
	r.c.e.count(func(s *Counters) { s.Refused++ })
	r.c.refused(code, text)
	return nil
}

// answer sends the answer to open.
func (c *Conn) answer(ctx context.Context, k kind, msg []byte) error {
	e := c.e
	e.mu.Lock()
	err := c.err
	if err == nil && c.state != statePending {
		err = ErrClosed
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	s, err := c.f.sender()
	if err == nil {
		e.mu.Lock()
		c.s = s
		e.mu.Unlock()
		err = s.Send(ctx, msg, relay.SendOptions{PPID: ppidOf(k, c.generation)})
	}
	if err != nil {
		c.fail(fmt.Errorf("%w: %w", ErrReset, err), CodeUnspecified, true)
	}
	return err
}

// onOpen handles open.
func (f *flow) onOpen(generation uint32, msg []byte) bool {
	e := f.p.e
	p := f.p
	if f.stream < firstStream || msg[0] != version {
		return false
	}
	if f.stream&1 == p.odd { // on a stream of those that this side opens
		return false
	}
	code, why := CodeUnspecified, ""
	if e.cfg.Allow != nil && !e.cfg.Allow(p.addr) {
		code, why = CodeForbidden, "not allowed"
	}
	e.mu.Lock()
	former := f.conn
	e.mu.Unlock()
	if former != nil {
		former.fail(fmt.Errorf("%w: the other end has opened another connection", ErrReset), CodeUnspecified, false)
	}
	var c *Conn
	e.mu.Lock()
	switch {
	case e.closed:
		e.mu.Unlock()
		return true
	case why != "":
	case e.conns >= e.cfg.MaxConns:
		code, why = CodeBusy, "too many connections"
	default:
		c = e.newConn(f, generation, statePending)
		c.r = f.r
		select {
		case e.accepts <- &Request{c, append([]byte(nil), msg[1:]...)}:
		default:
			c.over()
			c = nil
			code, why = CodeBusy, "too many connections wait"
		}
	}
	if c == nil {
		e.counters.Refused++
	}
	e.mu.Unlock()
	if c == nil {
		e.note(slog.LevelWarn, "connection refused", slog.String("process", p.addr.String()), slog.String("reason", why))
		f.refuse(generation, code, why)
	}
	return true
}

// refuse answers an open without a connection. If there is no room for that, it is a reset.
func (f *flow) refuse(generation uint32, code Code, why string) {
	e := f.p.e
	s, err := f.sender()
	if err == nil {
		err = s.TrySend(append([]byte{byte(code)}, why...), relay.SendOptions{PPID: ppidOf(kindRefuse, generation)})
	}
	if err == nil || errors.Is(err, relay.ErrClosed) {
		return
	}
	e.mu.Lock()
	f.p.notices[f.stream] = notice{kindReset, f.stream, generation, code}
	e.mu.Unlock()
	f.p.tell(false)
}
