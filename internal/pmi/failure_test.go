package pmi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

// watchers starts n ranks that watch, and returns the server with what they
// are told.
func watchers(t *testing.T, n int) (*Server, []*Client, chan string) {
	t.Helper()
	s := NewServer(n, "kvs_watch")
	t.Setenv(EnvWatch, s.Name())
	told := make(chan string, 100)
	clients := make([]*Client, n)
	for i := range n {
		here, there := net.Pipe()
		go s.Serve(t.Context(), i, there)
		c, err := NewClient(t.Context(), here, i, n)
		if err != nil {
			t.Fatal(err)
		}
		if !c.CanWatch() {
			t.Fatal("the client does not know its launcher")
		}
		err = c.Watch(t.Context(), func(rank int, why string) {
			told <- fmt.Sprintf("%d: rank %d %s", i, rank, why)
		}, func(err error) {
			told <- fmt.Sprintf("%d: lost %t", i, errors.Is(err, errLost))
		})
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = c
	}
	return s, clients, told
}

func TestFailureIsTold(t *testing.T) {
	s, clients, told := watchers(t, 3)
	s.Fail(1, "was killed\nby signal 9")
	s.Fail(1, "again")
	got := map[string]bool{<-told: true, <-told: true}
	for _, want := range []string{"0: rank 1 was killed by signal 9", "2: rank 1 was killed by signal 9"} {
		if !got[want] {
			t.Errorf("told %v, want %q", got, want)
		}
	}
	// The barrier is that of the others, also when the dead had been in it.
	gone := make(chan error, 1)
	go func() { gone <- clients[2].Barrier(t.Context()) }()
	if err := clients[0].Barrier(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
	// Requests and news go by the same connection.
	if err := clients[0].Put(t.Context(), "k", "v"); err != nil {
		t.Error(err)
	}
	s.Fail(2, "too")
	if v, err := clients[0].Get(t.Context(), "k"); v != "v" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
	if got := <-told; got != "0: rank 2 too" && got != "1: rank 2 too" {
		t.Errorf("told %q", got)
	}
	if err := clients[0].Finalize(t.Context()); err != nil {
		t.Error(err)
	}
	for len(told) > 0 {
		if got := <-told; strings.HasPrefix(got, "0: lost") {
			t.Errorf("after Finalize: %q", got)
		}
	}
}

func TestFailureBeforeTheWatchIsTold(t *testing.T) {
	s := NewServer(2, "kvs_late")
	s.Fail(1, "never started")
	t.Setenv(EnvWatch, s.Name())
	c := joined(t, s, 2)
	told := make(chan string, 1)
	err := c.Watch(t.Context(), func(rank int, why string) { told <- fmt.Sprint(rank, " ", why) }, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-told; got != "1 never started" {
		t.Errorf("told %q", got)
	}
	if err := c.Barrier(t.Context()); err != nil {
		t.Errorf("barrier alone: %v", err)
	}
}

func TestBarrierGoesOnWithoutTheDead(t *testing.T) {
	s, clients, _ := watchers(t, 3)
	done := make(chan error, 2)
	for _, c := range clients[:2] {
		go func() { done <- c.Barrier(t.Context()) }()
	}
	s.Fail(2, "gone") // before or after they are in
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestLostLauncherIsTold(t *testing.T) {
	s := NewServer(1, "kvs_lost")
	t.Setenv(EnvWatch, s.Name())
	ctx, cancel := context.WithCancel(t.Context())
	here, there := net.Pipe()
	go s.Serve(ctx, 0, there)
	c, err := NewClient(t.Context(), here, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	lost := make(chan error, 1)
	if err := c.Watch(t.Context(), func(int, string) {}, func(err error) { lost <- err }); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-lost; !errors.Is(err, errLost) {
		t.Errorf("lost = %v", err)
	}
	if err := c.Barrier(t.Context()); err == nil {
		t.Error("a barrier without a launcher succeeds")
	}
}

func TestOtherLaunchersAreNotWatched(t *testing.T) {
	t.Setenv(EnvWatch, "kvs_of_an_outer_job")
	job(t, 1, func(c *Client) error {
		if c.CanWatch() {
			return errors.New("a foreign launcher is taken for our own")
		}
		return c.Finalize(t.Context())
	})
}

// joined returns a client of s, rank 0 of size.
func joined(t *testing.T, s *Server, size int) *Client {
	t.Helper()
	here, there := net.Pipe()
	go s.Serve(t.Context(), 0, there)
	c, err := NewClient(t.Context(), here, 0, size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
