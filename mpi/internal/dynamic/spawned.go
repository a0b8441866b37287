package dynamic

import (
	"context"
	"sync"
)

// maxDeaths bounds the failures in other jobs that are remembered.
const maxDeaths = 4096

// Spawned is what a process knows of the jobs that it starts. The zero value knows of none.
type Spawned struct {
	mu       sync.Mutex
	deaths   map[string]error                   // first failure, by name of the job
	spawning map[string]context.CancelCauseFunc // by name of the job that is being started
}

// Died notes the failure of a process of a job, and ends what waits for the job.
func (s *Spawned) Died(job string, err error) {
	s.mu.Lock()
	if s.deaths == nil {
		s.deaths = make(map[string]error)
	}
	if len(s.deaths) < maxDeaths && s.deaths[job] == nil {
		s.deaths[job] = err
	}
	cancel := s.spawning[job]
	s.mu.Unlock()
	if cancel != nil {
		cancel(err)
	}
}

// Watch returns a context that ends when a process of a job fails. The caller calls undo when it
// waits for the job no longer.
func (s *Spawned) Watch(ctx context.Context, job string) (watched context.Context, undo func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.deaths[job]; err != nil {
		cancel(err)
	}
	if s.spawning == nil {
		s.spawning = make(map[string]context.CancelCauseFunc)
	}
	s.spawning[job] = cancel
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.spawning, job)
		cancel(nil)
	}
}
