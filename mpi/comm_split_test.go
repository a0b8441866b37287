package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestSplitType divides ranks of one host in all ways: some give all, one each,
// or none.
func TestSplitType(t *testing.T) {
	const p = 4
	local(t, p, func(ctx context.Context, c *Comm) error {
		for _, tt := range []struct {
			name string
			kind SplitKind
			info Info
			size int // 0: no communicator
		}{
			{"memory", SplitByMemory, nil, p},
			{"guided", SplitHWGuided, Info{InfoHWType: ResourceMemory}, p},
			{"guided by what is not known", SplitHWGuided, Info{InfoHWType: "hwloc://L2Cache"}, 0},
			{"guided by nothing", SplitHWGuided, nil, 0},
			{"unguided: all are on one host", SplitHWUnguided, nil, 0},
			{"resource", SplitResourceGuided, Info{InfoHWType: ResourceMemory}, p},
			{"world", SplitResourceGuided, Info{InfoPset: PsetWorld}, p},
			{"self", SplitResourceGuided, Info{InfoPset: PsetSelf}, 1},
			{"no such set", SplitResourceGuided, Info{InfoPset: "mpi://OTHER"}, 0},
			{"left out", 0, nil, 0},
		} {
			d, err := c.SplitType(ctx, tt.kind, -c.Rank(), tt.info)
			if err != nil {
				return fmt.Errorf("%s: %w", tt.name, err)
			}
			size := 0
			if d != nil {
				size = d.Size()
				if want := size - 1 - c.Rank()%size; d.Rank() != want {
					return fmt.Errorf("%s: rank %d, want %d: keys are from the last to the first", tt.name, d.Rank(), want)
				}
				if err := Barrier(ctx, d); err != nil {
					return err
				}
			}
			if size != tt.size {
				return fmt.Errorf("%s: %d ranks, want %d", tt.name, size, tt.size)
			}
		}
		// Some are left out.
		kind := SplitByMemory
		if c.Rank() == 2 {
			kind = 0
		}
		d, err := c.SplitType(ctx, kind, 0, nil)
		if err != nil || (d == nil) != (kind == 0) || d != nil && (d.Size() != p-1 || d.Info()[InfoHWType] != ResourceMemory) {
			return fmt.Errorf("without rank 2: %v, %w", d, err)
		}
		if _, err := c.SplitType(ctx, 9, 0, nil); !errors.Is(err, ErrOption) {
			return fmt.Errorf("kind 9: %w", err)
		}
		return nil
	})
}

// TestSplitTypeInter divides an intercommunicator: what is made has ranks of both groups.
func TestSplitTypeInter(t *testing.T) {
	runInter(t, 5, func(ctx context.Context, _ *World, c *Comm) error {
		d, err := c.SplitType(ctx, SplitByMemory, 0, nil)
		if err != nil {
			return err
		}
		if d == nil || d.Rank() != c.Rank() || d.Size() != c.Size() || d.RemoteSize() != c.RemoteSize() ||
			d.Info()[InfoHWType] != ResourceMemory {
			return fmt.Errorf("by memory: %v", d)
		}
		if err := Barrier(ctx, d); err != nil {
			return err
		}
		// The first of both groups alone; the others are left out.
		kind := SplitByMemory
		if c.Rank() != 0 {
			kind = 0
		}
		d, err = c.SplitType(ctx, kind, 0, nil)
		if err != nil || (d == nil) != (kind == 0) || d != nil && (d.Size() != 1 || d.RemoteSize() != 1) {
			return fmt.Errorf("of the first: %v, %w", d, err)
		}
		// All are on the host, and a set of one process has none of the other group.
		for _, info := range []Info{nil, {InfoPset: PsetSelf}} {
			kind := SplitHWUnguided
			if info != nil {
				kind = SplitResourceGuided
			}
			if d, err := c.SplitType(ctx, kind, 0, info); d != nil || err != nil {
				return fmt.Errorf("kind %d, %v: %v, %w", kind, info, d, err)
			}
		}
		return nil
	})
}

// TestTopologyMaps compares the ranks that maps give with those of the
// topologies themselves.
func TestTopologyMaps(t *testing.T) {
	const p = 5
	local(t, p, func(ctx context.Context, c *Comm) error {
		dims, periods := []int{2, 2}, []bool{true, false}
		want := Undefined
		cart, err := NewCart(ctx, c, dims, periods)
		if err != nil {
			return err
		}
		if cart != nil {
			want = cart.Comm().Rank()
		}
		if got, err := CartMap(c, dims, periods); got != want || err != nil {
			return fmt.Errorf("grid: %d, want %d: %w", got, want, err)
		}
		nodes := [][]int{{1, 2}, {0}, {0}}
		want = Undefined
		graph, err := NewFullGraph(ctx, c, nodes)
		if err != nil {
			return err
		}
		if graph != nil {
			want = graph.Comm().Rank()
		}
		if got, err := GraphMap(c, nodes); got != want || err != nil {
			return fmt.Errorf("graph: %d, want %d: %w", got, want, err)
		}
		if _, err := CartMap(c, []int{2, 3}, periods); !errors.Is(err, ErrTopology) {
			return fmt.Errorf("a grid of too many: %w", err)
		}
		if _, err := GraphMap(c, make([][]int, p+1)); !errors.Is(err, ErrTopology) {
			return fmt.Errorf("a graph of too many: %w", err)
		}
		if _, err := GraphMap(c, [][]int{{1}}); !errors.Is(err, ErrRank) {
			return fmt.Errorf("a neighbour that is not there: %w", err)
		}
		return nil
	})
}

// TestSplitHosts divides ranks on two hosts by what HardwareInfo names, and by the
// next smaller resource, which is the host.
func TestSplitHosts(t *testing.T) {
	hosts := []int{0, 1, 1, 0, 1}
	err := RunLocal(t.Context(), len(hosts), func(ctx context.Context, w *World) error {
		c, want := w.Comm(), 2+hosts[w.Rank()]
		resources := HardwareInfo()
		if len(resources) == 0 {
			return errors.New("no resources")
		}
		for _, key := range resources.Keys() {
			share := want
			if key == ResourceSite { // no rank has told its own: they share one
				share = c.Size()
			}
			d, err := c.SplitType(ctx, SplitHWGuided, 0, Info{InfoHWType: key})
			if err != nil || d.Size() != share || resources[key] != "true" {
				return fmt.Errorf("%s: %v, %q, %w", key, d, resources[key], err)
			}
		}
		d, err := c.SplitType(ctx, SplitHWUnguided, 0, nil)
		if err != nil || d == nil || d.Size() != want || d.Info()[InfoHWType] != ResourceMemory {
			return fmt.Errorf("unguided: %v, %w", d, err)
		}
		if d, err = c.SplitShared(ctx, 0); err != nil || d.Size() != want {
			return fmt.Errorf("shared: %v, %w", d, err)
		}
		if _, err := WinAllocateShared[int](ctx, c, 1); !errors.Is(err, ErrWindow) || ErrorClass(err) != ClassRMAShared {
			return fmt.Errorf("a shared window of several hosts: class %v, %w", ErrorClass(err), err)
		}
		return nil
	}, withHosts(hosts))
	if err != nil {
		t.Error(err)
	}
}
