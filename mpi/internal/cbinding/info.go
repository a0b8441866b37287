package cbinding

import (
	"maps"
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// An Info is an MPI_Info: keys, in the order in which they were set, and values.
type Info struct {
	Mu   sync.Mutex
	Keys []string
	Vals map[string]string
}

func init() { AtStart(func() { Infos.Set(abi.InfoEnv, UsedInfo(mpi.EnvInfo())) }) }

// NewInfo makes the info object of hints of package mpi.
func NewInfo(from mpi.Info) *Info { return &Info{Keys: from.Keys(), Vals: maps.Clone(from)} }

// InfoOf returns the info object of a handle, for calls that need one.
func InfoOf(h abi.Handle) (*Info, error) { return Infos.Lookup(h) }

// HintsOf returns the hints of a handle as package mpi takes them. MPI_INFO_NULL has none.
func HintsOf(h abi.Handle) (mpi.Info, error) {
	if h == abi.InfoNull {
		return nil, nil
	}
	i, err := InfoOf(h)
	if err != nil {
		return nil, err
	}
	i.Mu.Lock()
	defer i.Mu.Unlock()
	return maps.Clone(i.Vals), nil
}

// infoMemoryKinds is the info key of sessions and communicators for the kinds of memory that calls take
// (MPI-4.1, Section 11.4.3).
const infoMemoryKinds = "mpi_memory_alloc_kinds"

// UsedInfo makes the info object of the hints of a session or communicator.
func UsedInfo(from mpi.Info) *Info {
	i := NewInfo(from)
	i.Set(infoMemoryKinds, "mpi,system")
	return i
}

// NewInfoHandle stores the handle of a new info object at p.
func NewInfoHandle(p uintptr, i *Info) error {
	if p == 0 {
		return NullError("info")
	}
	h, err := Infos.Put(i)
	if err != nil {
		h = abi.InfoNull
	}
	SetHandle(p, h)
	return err
}

// Get returns the value of a key.
func (i *Info) Get(key string) (string, bool) {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	v, ok := i.Vals[key]
	return v, ok
}

// Set sets a key.
func (i *Info) Set(key, value string) {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if _, ok := i.Vals[key]; !ok {
		i.Keys = append(i.Keys, key)
	}
	if i.Vals == nil {
		i.Vals = make(map[string]string)
	}
	i.Vals[key] = value
}
