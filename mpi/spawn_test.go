package mpi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/pmi"
)

// child is a program that mingles with those that have spawned it.
func child(want int) Program {
	return func(ctx context.Context, w *World, args []string) error {
		p := w.Parent()
		if p == nil {
			return errors.New("no parent")
		}
		if n := w.AppNum(ctx); fmt.Sprint("app", n) != args[0] {
			return fmt.Errorf("command %d has the argument %q", n, args[0])
		}
		if err := mingle(ctx, p, true, want); err != nil {
			return err
		}
		if err := p.Disconnect(ctx); err != nil {
			return err
		}
		if w.Parent() != nil {
			return errors.New("parent after Disconnect")
		}
		return Barrier(ctx, w.Comm())
	}
}

func TestSpawn(t *testing.T) {
	const parents = 2
	for _, tr := range interTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			err := RunLocal(ctx, parents, func(ctx context.Context, w *World) error {
				if w.Parent() != nil {
					return errors.New("a parent of ranks that nobody has spawned")
				}
				var cmds []Command
				if w.Rank() == 1 {
					cmds = []Command{{Path: "three", Args: []string{"app0"}, N: 2}, {Path: "three", Args: []string{"app1"}, N: 5, Info: Info{InfoSoft: "1,7:9"}}}
				}
				c, err := w.Comm().SpawnMultiple(ctx, cmds, 1)
				if err != nil {
					return err
				}
				if c.RemoteSize() != 3 {
					return fmt.Errorf("%d processes, want 3", c.RemoteSize())
				}
				if err := mingle(ctx, c, false, parents+3); err != nil {
					return err
				}
				if err := c.Disconnect(ctx); err != nil {
					return err
				}
				// Each rank alone, at the same time.
				c, err = w.Self().Spawn(ctx, Command{Path: "two", Args: []string{"app0"}, N: 1}, 0)
				if err != nil {
					return err
				}
				if err := mingle(ctx, c, false, 2); err != nil {
					return err
				}
				if err := c.Disconnect(ctx); err != nil {
					return err
				}
				return Barrier(ctx, w.Comm())
			}, overTransport(tr), WithProgram("two", child(2)), WithProgram("three", child(parents+3)))
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSpawnErrors(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
		many := make([]Command, MaxCommands+1)
		for i := range many {
			many[i] = Command{Path: "p", N: 1}
		}
		for _, tt := range []struct {
			name string
			cmds []Command
		}{
			{"none", nil},
			{"no processes", []Command{{Path: "p"}}},
			{"missing", []Command{{Path: "p", N: 1}, {Path: "nothing", N: 2}}},
			{"too many processes", []Command{{Path: "p", N: MaxSpawn + 1}}},
			{"too many of several", []Command{{Path: "p", N: MaxSpawn}, {Path: "p", N: 1}}},
			{"too many commands", many},
			{"too many arguments", []Command{{Path: "p", N: 1, Args: make([]string, MaxSpawnArgs+1)}}},
			{"long argument", []Command{{Path: "p", N: 1, Args: []string{strings.Repeat("x", MaxSpawnArg+1)}}}},
			{"soft", []Command{{Path: "p", N: 1, Info: Info{InfoSoft: "2:4"}}}},
		} {
			_, err := w.Comm().SpawnMultiple(ctx, tt.cmds, 0)
			if !errors.Is(err, ErrSpawn) || ErrorClass(err) != ClassSpawn {
				return fmt.Errorf("%s: %w", tt.name, err)
			}
			var se *SpawnError
			if tt.name == "missing" && w.Rank() == 0 {
				if !errors.As(err, &se) || len(se.Errs) != 3 || se.Errs[0] != nil || se.Errs[1] == nil || se.Errs[2] == nil {
					return fmt.Errorf("%s: %#v", tt.name, err)
				}
			}
		}
		if _, err := w.Comm().Spawn(ctx, Command{Path: "p", N: 1}, 2); !errors.Is(err, ErrRoot) {
			return fmt.Errorf("root: %w", err)
		}
		return Barrier(ctx, w.Comm())
	}, WithProgram("p", func(context.Context, *World, []string) error { return errors.New("started") }))
	if err != nil {
		t.Error(err)
	}
}

// The error of a program is that of RunLocal, and ends the others.
func TestSpawnedFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	oops := errors.New("oops")
	err := RunLocal(ctx, 1, func(ctx context.Context, w *World) error {
		c, err := w.Comm().Spawn(ctx, Command{Path: "p", N: 1}, 0)
		if err != nil {
			return err
		}
		_, err = Recv(ctx, c, make([]int, 1), 0, 0)
		if err == nil {
			return errors.New("received from nobody")
		}
		return nil
	}, WithProgram("p", func(context.Context, *World, []string) error { return oops }))
	if !errors.Is(err, oops) || !strings.Contains(err.Error(), "spawned job 1, rank 0") {
		t.Errorf("error = %v", err)
	}
}

// A spawned rank that dies does not concern the others, in a fault tolerant job.
func TestSpawnedDies(t *testing.T) {
	for _, tr := range interTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			oops := errors.New("oops")
			err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
				c, err := w.Comm().Spawn(ctx, Command{Path: "p", N: 2}, 0)
				if err != nil {
					return err
				}
				m, err := c.IntercommMerge(ctx, false)
				if err != nil {
					return err
				}
				return survive(ctx, m)
			}, overTransport(tr), WithFaultTolerance(), WithProgram("p", func(ctx context.Context, w *World, _ []string) error {
				m, err := w.Parent().IntercommMerge(ctx, true)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					for r := range 3 {
						if _, err := Recv(ctx, m, make([]int, 1), r, 1); err != nil {
							return err
						}
					}
					return oops
				}
				return survive(ctx, m)
			}))
			if !errors.Is(err, oops) || strings.Contains(err.Error(), "survivor") {
				t.Errorf("error = %v", err)
			}
		})
	}
}

// survive is what the others do when rank 3 of m, of another job for some, dies.
func survive(ctx context.Context, m *Comm) error {
	// It dies when all have m.
	if err := Send(ctx, m, []int{1}, 3, 1); err != nil {
		return fmt.Errorf("survivor: %w", err)
	}
	_, err := Recv(ctx, m, make([]int, 1), 3, 0)
	var re *RankError
	if !errors.As(err, &re) || re.Rank != 1 || re.Other != (m.Rank() < 2) {
		return fmt.Errorf("survivor: received from the dead: %#v", err)
	}
	s, err := m.Shrink(ctx)
	if err != nil {
		return fmt.Errorf("survivor: %w", err)
	}
	sum := []int{1}
	if err := Allreduce(ctx, s, sum, sum, Sum); err != nil || sum[0] != 3 {
		return fmt.Errorf("survivor: sum %d, %w", sum[0], err)
	}
	return nil
}

func TestNames(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := new(pmi.Names)
	go server.ServeNames(t.Context(), l, "token")
	t.Run("process", func(t *testing.T) { testNames(t, &localNames) })
	t.Run("server", func(t *testing.T) { testNames(t, server, WithNameServer(l.Addr().String()+"/token")) })
}

// testNames publishes names, which must come to names.
func testNames(t *testing.T, names *pmi.Names, opts ...Option) {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	err := RunLocal(ctx, 1, func(ctx context.Context, w *World) error {
		const name = "an ocean = model"
		if _, err := w.LookupName(ctx, name); !errors.Is(err, ErrName) || ErrorClass(err) != ClassName {
			return fmt.Errorf("looked up before: %w", err)
		}
		if err := w.PublishName(ctx, name, "port 1"); err != nil {
			return err
		}
		if err := w.PublishName(ctx, name, "port 2"); !errors.Is(err, ErrService) || ErrorClass(err) != ClassService {
			return fmt.Errorf("published twice: %w", err)
		}
		if port, err := w.LookupName(ctx, name); err != nil || port != "port 1" {
			return fmt.Errorf("looked up %q, %w", port, err)
		}
		if port, err := names.Lookup(name); err != nil || port != "port 1" {
			return fmt.Errorf("published elsewhere: %q, %w", port, err)
		}
		if err := w.UnpublishName(ctx, name, "port 2"); !errors.Is(err, ErrService) {
			return fmt.Errorf("unpublished that of another port: %w", err)
		}
		if err := w.UnpublishName(ctx, name, "port 1"); err != nil {
			return err
		}
		if err := w.UnpublishName(ctx, name, "port 1"); !errors.Is(err, ErrService) {
			return fmt.Errorf("unpublished twice: %w", err)
		}
		if err := w.PublishName(ctx, strings.Repeat("x", MaxServiceName+1), "port"); !errors.Is(err, ErrService) {
			return fmt.Errorf("long name: %w", err)
		}
		for i := range MaxServices {
			if err := names.Publish(fmt.Sprint("service ", i), "port"); err != nil {
				return err
			}
		}
		if err := w.PublishName(ctx, name, "port"); !errors.Is(err, ErrService) {
			return fmt.Errorf("too many names: %w", err)
		}
		for i := range MaxServices {
			if err := names.Unpublish(fmt.Sprint("service ", i), ""); err != nil {
				return err
			}
		}
		return nil
	}, opts...)
	if err != nil {
		t.Error(err)
	}
}
