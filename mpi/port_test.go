package mpi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// twoJobs runs two jobs in this process, over each transport: server opens a
// port, whose name client gets.
func twoJobs(t *testing.T, servers, clients int, server func(context.Context, *World, string) error, client func(context.Context, *World, string) error) {
	t.Helper()
	for _, tr := range interTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			name := make(chan string, clients)
			errc := make(chan error, 2)
			go func() {
				errc <- RunLocal(ctx, servers, func(ctx context.Context, w *World) error {
					port := ""
					if w.Rank() == 0 {
						var err error
						if port, err = w.OpenPort(); err != nil {
							return err
						}
						for range clients {
							name <- port
						}
					}
					return server(ctx, w, port)
				}, overTransport(tr))
			}()
			go func() {
				errc <- RunLocal(ctx, clients, func(ctx context.Context, w *World) error {
					select {
					case port := <-name:
						return client(ctx, w, port)
					case <-ctx.Done():
						return ctx.Err()
					}
				}, overTransport(tr))
			}()
			for range 2 {
				if err := <-errc; err != nil {
					t.Error(err)
					cancel()
				}
			}
		})
	}
}

// mingle uses an intercommunicator, and a communicator and a window of both groups.
func mingle(ctx context.Context, c *Comm, high bool, want int) error {
	if c.Size()+c.RemoteSize() != want {
		return fmt.Errorf("%v, want %d processes", c, want)
	}
	if err := everyPair(ctx, c, c.Rank(), func(r int) int { return r }); err != nil {
		return err
	}
	m, err := c.IntercommMerge(ctx, high)
	if err != nil {
		return err
	}
	defer m.Free()
	sum := []int{m.Rank() + 1}
	if err := Allreduce(ctx, m, sum, sum, Sum); err != nil {
		return err
	}
	if sum[0] != want*(want+1)/2 {
		return fmt.Errorf("sum %d over %d", sum[0], want)
	}
	// A long message to the next one.
	next, before := (m.Rank()+1)%want, (m.Rank()+want-1)%want
	long, got := make([]int, 1<<16), make([]int, 1<<16)
	for i := range long {
		long[i] = i ^ m.Rank()
	}
	if _, err := Sendrecv(ctx, m, long, next, 1, got, before, 1); err != nil {
		return err
	}
	for i := range got {
		if got[i] != i^before {
			return fmt.Errorf("element %d is %d", i, got[i])
		}
	}
	w, err := WinAllocate[int64](ctx, m, want)
	if err != nil {
		return err
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	for r := range want {
		if err := w.Put(ctx, []int64{int64(100*m.Rank() + r)}, r, m.Rank()); err != nil {
			return err
		}
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	for r := range want {
		var x [1]int64
		if err := w.Get(ctx, x[:], r, m.Rank()); err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if x[0] != int64(100*m.Rank()+r) || w.Buf()[r] != int64(100*r+m.Rank()) {
			return fmt.Errorf("window of %d: got %d, own %v", r, x[0], w.Buf())
		}
	}
	old, err := w.FetchAndOp(ctx, 1, 0, 0, Sum)
	if err != nil || old < 0 {
		return fmt.Errorf("fetched %d, %w", old, err)
	}
	if err := w.Free(ctx); err != nil {
		return err
	}
	s, err := WinAllocateShared[int64](ctx, m, 1)
	if err != nil {
		return err
	}
	s.Buf()[0] = int64(m.Rank())
	if err := s.Fence(ctx); err != nil {
		return err
	}
	for r := range want {
		mem, err := s.SharedQuery(r)
		if err != nil {
			return err
		}
		if mem[0] != int64(r) {
			return fmt.Errorf("shared memory of %d holds %d", r, mem[0])
		}
	}
	return s.Free(ctx)
}

func TestAcceptConnect(t *testing.T) {
	const servers, clients = 3, 2
	twoJobs(t, servers, clients, func(ctx context.Context, w *World, port string) error {
		var last *Comm
		for i := range 3 {
			c, err := w.Comm().Accept(ctx, port, 0)
			if err != nil {
				return fmt.Errorf("accept %d: %w", i, err)
			}
			if err := mingle(ctx, c, false, servers+clients); err != nil {
				return fmt.Errorf("server, round %d: %w", i, err)
			}
			if i == 0 {
				last = c // the second connection is made while there is one
				continue
			}
			if err := c.Disconnect(ctx); err != nil {
				return err
			}
			if i == 1 {
				if n := w.eng.RemoteCount(); n != clients {
					return fmt.Errorf("%d processes connected, want %d", n, clients)
				}
				if err := mingle(ctx, last, false, servers+clients); err != nil {
					return fmt.Errorf("first intercommunicator again: %w", err)
				}
				if err := last.Disconnect(ctx); err != nil {
					return err
				}
			}
			if err := nobody(ctx, w); err != nil {
				return err
			}
			if _, err := Isend(c, []int{1}, 0, 0); !errors.Is(err, ErrFreed) {
				return fmt.Errorf("send after Disconnect: %w", err)
			}
		}
		if w.Rank() == 0 {
			return w.ClosePort(port)
		}
		return nil
	}, func(ctx context.Context, w *World, port string) error {
		var last *Comm
		for i := range 3 {
			c, err := w.Comm().Connect(ctx, port, 0, nil)
			if err != nil {
				return fmt.Errorf("connect %d: %w", i, err)
			}
			if err := mingle(ctx, c, true, servers+clients); err != nil {
				return fmt.Errorf("client, round %d: %w", i, err)
			}
			if i == 0 {
				last = c
				continue
			}
			if err := c.Disconnect(ctx); err != nil {
				return err
			}
			if i == 1 {
				if err := mingle(ctx, last, true, servers+clients); err != nil {
					return fmt.Errorf("first intercommunicator again: %w", err)
				}
				if err := last.Disconnect(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// nobody waits until no process of another job is known any more.
func nobody(ctx context.Context, w *World) error {
	for w.eng.RemoteCount() > 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d processes are still connected: %w", w.eng.RemoteCount(), ctx.Err())
		}
	}
	return nil
}

// A group of two jobs connects to a third.
func TestConnectThirdJob(t *testing.T) {
	for _, tr := range interTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			first, second := make(chan string, 1), make(chan string, 1)
			errc := make(chan error, 3)
			job := func(n int, f func(context.Context, *World) error) {
				go func() { errc <- RunLocal(ctx, n, f, overTransport(tr)) }()
			}
			get := func(c chan string) string {
				select {
				case s := <-c:
					return s
				case <-ctx.Done():
					return ""
				}
			}
			pair := func(ctx context.Context, m *Comm) error { // of jobs a and b
				port := ""
				if m.Rank() == 0 {
					port = get(second)
				}
				c, err := m.Connect(ctx, port, 0, nil)
				if err != nil {
					return err
				}
				if err := mingle(ctx, c, true, 5); err != nil {
					return fmt.Errorf("in the pair: %w", err)
				}
				if err := c.Disconnect(ctx); err != nil {
					return fmt.Errorf("disconnecting the pair: %w", err)
				}
				return nil
			}
			job(2, func(ctx context.Context, w *World) error {
				port := ""
				if w.Rank() == 0 {
					var err error
					if port, err = w.OpenPort(); err != nil {
						return err
					}
					first <- port
				}
				c, err := w.Comm().Accept(ctx, port, 0)
				if err != nil {
					return err
				}
				m, err := c.IntercommMerge(ctx, false)
				if err != nil {
					return err
				}
				return pair(ctx, m)
			})
			job(1, func(ctx context.Context, w *World) error {
				c, err := w.Comm().Connect(ctx, get(first), 0, nil)
				if err != nil {
					return err
				}
				m, err := c.IntercommMerge(ctx, true)
				if err != nil {
					return err
				}
				return pair(ctx, m)
			})
			job(2, func(ctx context.Context, w *World) error {
				port := ""
				if w.Rank() == 1 {
					var err error
					if port, err = w.OpenPort(); err != nil {
						return err
					}
					second <- port
				}
				c, err := w.Comm().Accept(ctx, port, 1)
				if err != nil {
					return err
				}
				if c.RemoteSize() != 3 || c.RemoteGroup().WorldRank(0) != Undefined {
					return fmt.Errorf("%v, rank %d", c, c.RemoteGroup().WorldRank(0))
				}
				if err := mingle(ctx, c, false, 5); err != nil {
					return fmt.Errorf("in the third job: %w", err)
				}
				if err := c.Disconnect(ctx); err != nil {
					return fmt.Errorf("disconnecting the third job: %w", err)
				}
				return nil
			})
			for range 3 {
				if err := <-errc; err != nil {
					t.Error(err)
					cancel()
				}
			}
		})
	}
}

func TestConnectErrors(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
		open, err := w.OpenPort()
		if err != nil {
			return err
		}
		closed, err := w.OpenPort()
		if err != nil {
			return err
		}
		if err := w.ClosePort(closed); err != nil {
			return err
		}
		forged := open[:len(open)-4] + "0000"
		if forged == open {
			forged = open[:len(open)-4] + "1111"
		}
		for _, tt := range []struct {
			name, port string
			info       Info
			is         error
		}{
			{"nothing", "", nil, ErrPort},
			{"no port", "tcp://127.0.0.1:80", nil, ErrPort},
			{"long", "weft://" + strings.Repeat("1", MaxPortName), nil, ErrPort},
			{"short key", open[:len(open)-2], nil, ErrPort},
			{"wrong key", forged, nil, ErrPort},
			{"closed", closed, nil, ErrPort},
			{"nobody accepts", open, Info{InfoTimeout: "1"}, ErrPort},
			{"bad hint", open, Info{InfoTimeout: "soon"}, ErrOption},
		} {
			// The one that is not the root knows nothing of it.
			port := tt.port
			if w.Rank() == 1 {
				port = "?"
			}
			_, err := w.Comm().Connect(ctx, port, 0, tt.info)
			if !errors.Is(err, tt.is) || ErrorClass(err) != ErrorClass(tt.is) {
				return fmt.Errorf("%s: %w", tt.name, err)
			}
		}
		short, stop := context.WithTimeout(ctx, 10*time.Millisecond)
		defer stop()
		if _, err := w.Self().Accept(short, open, 0); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("accept of nobody: %w", err)
		}
		if _, err := w.Self().Accept(ctx, closed, 0); !errors.Is(err, ErrPort) {
			return fmt.Errorf("accept at a closed port: %w", err)
		}
		if err := w.ClosePort(closed); !errors.Is(err, ErrPort) {
			return fmt.Errorf("closed twice: %w", err)
		}
		if err := w.Comm().Disconnect(ctx); !errors.Is(err, ErrComm) {
			return fmt.Errorf("disconnected the world: %w", err)
		}
		// Closing a port ends the Accept that waits there.
		errc := make(chan error, 1)
		go func() {
			_, err := w.Self().Accept(ctx, open, 0)
			errc <- err
		}()
		if err := w.ClosePort(open); err != nil {
			return err
		}
		if err := <-errc; !errors.Is(err, ErrPort) {
			return fmt.Errorf("accept at a port that is closed: %w", err)
		}
		return Barrier(ctx, w.Comm())
	})
	if err != nil {
		t.Error(err)
	}
}

// Jobs with other transports do not fit.
func TestConnectOtherTransport(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	name := make(chan string, 1)
	errc := make(chan error, 2)
	go func() {
		errc <- RunLocal(ctx, 1, func(ctx context.Context, w *World) error {
			port, err := w.OpenPort()
			if err != nil {
				return err
			}
			name <- port
			if _, err := w.Comm().Accept(ctx, port, 0); !errors.Is(err, ErrOption) {
				return fmt.Errorf("accepted: %w", err)
			}
			return nil
		}, WithTransport(TransportTCP))
	}()
	errc <- RunLocal(ctx, 1, func(ctx context.Context, w *World) error {
		if _, err := w.Comm().Connect(ctx, <-name, 0, nil); !errors.Is(err, ErrOption) {
			return fmt.Errorf("connected: %w", err)
		}
		return nil
	}, WithTransport(TransportSCTP))
	for range 2 {
		if err := <-errc; err != nil {
			t.Error(err)
		}
	}
}

// Connections that say nothing keep nobody from a port.
func TestIdleConnectionsLeaveThePortOpen(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), handshake.Timeout/2)
	defer cancel()
	name := make(chan string, 1)
	errc := make(chan error, 1)
	go func() {
		errc <- RunLocal(ctx, 1, func(ctx context.Context, w *World) error {
			p, err := w.OpenPort()
			if err != nil {
				return err
			}
			name <- p
			c, err := w.Comm().Accept(ctx, p, 0)
			if err != nil {
				return err
			}
			return c.Disconnect(ctx)
		}, WithTransport(TransportTCP))
	}()
	port := <-name
	addr, _, _ := strings.Cut(strings.TrimPrefix(port, "weft://"), "/")
	idle(t, addr, 3*handshake.MaxUnproven)
	err := RunLocal(ctx, 1, func(ctx context.Context, w *World) error {
		c, err := w.Comm().Connect(ctx, port, 0, nil)
		if err != nil {
			return err
		}
		return c.Disconnect(ctx)
	}, WithTransport(TransportTCP))
	if err != nil {
		t.Error(err)
	}
	if err := <-errc; err != nil {
		t.Error(err)
	}
}

func TestPortLimits(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	err := RunLocal(ctx, 1, func(ctx context.Context, w *World) error {
		for i := range MaxPorts {
			name, err := w.OpenPort()
			if err != nil {
				return fmt.Errorf("port %d: %w", i, err)
			}
			if len(name) > MaxPortName {
				return fmt.Errorf("name of %d bytes", len(name))
			}
		}
		if _, err := w.OpenPort(); !errors.Is(err, ErrLimit) {
			return fmt.Errorf("too many ports: %w", err)
		}
		for i := range MaxConnected {
			if _, err := w.eng.AddRemote(p2p.ProcName{Job: 1, Rank: uint32(i)}, p2p.RemoteInfo{}, 0); err != nil {
				return err
			}
		}
		if _, err := w.eng.AddRemote(p2p.ProcName{Job: 1}, p2p.RemoteInfo{}, 0); !errors.Is(err, ErrLimit) {
			return fmt.Errorf("too many processes: %w", err)
		}
		return nil
	}, WithStreams(1))
	if err != nil {
		t.Error(err)
	}
}
