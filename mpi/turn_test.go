package mpi

import (
	"context"
	"testing"
)

func TestTurn(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	turn := newTurn()
	if err := turn.take(over); err != nil {
		t.Fatalf("a free one: %v", err)
	}
	if err := turn.take(over); err != context.Canceled {
		t.Fatalf("one that is held, with a context that is over: %v", err)
	}
	taken := make(chan error)
	go func() { taken <- turn.take(t.Context()) }()
	select {
	case <-taken:
		t.Fatal("taken twice")
	default:
	}
	turn.give()
	if err := <-taken; err != nil {
		t.Fatalf("one that was given back: %v", err)
	}
}
