package ctxmutex

import (
	"context"
	"testing"
)

func TestTurn(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	mu := New()
	if err := mu.Lock(over); err != nil {
		t.Fatalf("a free one: %v", err)
	}
	if err := mu.Lock(over); err != context.Canceled {
		t.Fatalf("one that is held, with a context that is over: %v", err)
	}
	taken := make(chan error)
	go func() { taken <- mu.Lock(t.Context()) }()
	select {
	case <-taken:
		t.Fatal("taken twice")
	default:
	}
	mu.Unlock()
	if err := <-taken; err != nil {
		t.Fatalf("one that was given back: %v", err)
	}
}
