package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// atSites lets the ranks of RunLocal be at the sites that the letters name, one for each rank.
func atSites(letters string) Option {
	return WithSite(func(rank int) string { return letters[rank : rank+1] })
}

// TestSiteSplit divides a communicator whose ranks interleave two sites in the three ways that know
// of sites.
func TestSiteSplit(t *testing.T) {
	err := RunLocal(t.Context(), 5, func(ctx context.Context, w *World) error {
		c := w.Comm()
		own := "ABABA"[c.Rank() : c.Rank()+1]
		if w.Site() != own {
			return fmt.Errorf("at site %q, want %q", w.Site(), own)
		}
		for r := range c.Size() {
			if s, err := c.SiteOf(r); err != nil || s != "ABABA"[r:r+1] {
				return fmt.Errorf("rank %d is at site %q: %v", r, s, err)
			}
		}
		if _, err := c.SiteOf(5); !errors.Is(err, ErrRank) {
			return fmt.Errorf("site of rank 5 of 5: %v", err)
		}
		for _, tt := range []struct {
			kind SplitKind
			info Info
		}{{SplitBySite, nil}, {SplitHWUnguided, nil}, {SplitHWGuided, Info{InfoHWType: ResourceSite}}} {
			d, err := c.SplitType(ctx, tt.kind, 0, tt.info)
			if err != nil || d == nil {
				return fmt.Errorf("split by %d: %v, %v", tt.kind, d, err)
			}
			want := []int{0, 2, 4}
			if own == "B" {
				want = []int{1, 3}
			}
			got := make([]int, d.Size())
			if err := Allgather(ctx, d, []int{c.Rank()}, got); err != nil || !slices.Equal(got, want) {
				return fmt.Errorf("split by %d: ranks %v, want %v: %v", tt.kind, got, want, err)
			}
			if i := d.Info(); i[InfoHWType] != ResourceSite || i[InfoSite] != own {
				return fmt.Errorf("split by %d: info %v at site %s", tt.kind, i, own)
			}
			again, err := d.SplitType(ctx, SplitHWUnguided, 0, nil)
			if err != nil || again != nil {
				return fmt.Errorf("all on one host and at one site, divided: %v, %v", again, err)
			}
			d.Free()
		}
		return nil
	}, atSites("ABABA"))
	if err != nil {
		t.Error(err)
	}
}

// TestSiteOfOtherJobs has two jobs at two sites connected: the processes know where those of the
// other job are.
func TestSiteOfOtherJobs(t *testing.T) {
	err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
		c, err := w.Comm().Spawn(ctx, Command{Path: "child", N: 2}, 0)
		if err != nil {
			return err
		}
		defer c.Disconnect(ctx)
		for r := range c.RemoteSize() {
			if s, err := c.SiteOf(r); err != nil || s != "AB"[r:r+1] {
				return fmt.Errorf("rank %d of the other job is at site %q: %v", r, s, err)
			}
		}
		return nil
	}, atSites("AB"), WithProgram("child", func(ctx context.Context, w *World, _ []string) error {
		return w.Parent().Disconnect(ctx)
	}))
	if err != nil {
		t.Error(err)
	}
}

// TestSiteNames has names that are too long, in the program and in the environment.
func TestSiteNames(t *testing.T) {
	long := strings.Repeat("x", MaxSiteName)
	for _, tt := range []struct {
		name string
		want error
	}{{long, nil}, {long + "x", ErrOption}} {
		err := RunLocal(t.Context(), 2, func(context.Context, *World) error { return nil }, WithSite(func(int) string { return tt.name }))
		if !errors.Is(err, tt.want) {
			t.Errorf("site with a name of %d bytes: %v", len(tt.name), err)
		}
		o := new(options)
		err = o.fromEnv(func(name string) string { return map[string]string{"WEFT_SITE": tt.name}[name] })
		if !errors.Is(err, tt.want) || err == nil && o.SiteOf(0) != tt.name {
			t.Errorf("WEFT_SITE of %d bytes: %v", len(tt.name), err)
		}
	}
}
