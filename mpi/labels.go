package mpi

import "sync"

// labels are the name and the attributes of an object.
type labels struct {
	attrs attributes
	mu    sync.Mutex
	name  string
}

func (l *labels) getName() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.name
}

func (l *labels) setName(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name = name
}
