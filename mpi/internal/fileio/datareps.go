package fileio

import (
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Names of the predefined data representations (MPI-4.1, Section 14.5).
const (
	Native     = "native"
	Internal   = "internal"
	External32 = "external32"
)

// Datareps are the data representations that a program has registered. The zero value has none.
type Datareps struct {
	mu     sync.Mutex
	byName map[datarepKey]*Datarep
}

// datarepKey names a registered representation: the same name may be used for several types.
type datarepKey struct {
	name string
	elem *datatype.Layout
}

// Add registers a representation of elements e. It returns ErrDatarep for a name that is taken.
func (d *Datareps) Add(e *datatype.Layout, rep *Datarep) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := datarepKey{rep.Name, e}
	if predefined(rep.Name) || d.byName[key] != nil {
		return fmt.Errorf("%w: %.40q is known already", mpierr.ErrDatarep, rep.Name)
	}
	if d.byName == nil {
		d.byName = make(map[datarepKey]*Datarep)
	}
	d.byName[key] = rep
	return nil
}

func predefined(name string) bool {
	return name == Native || name == Internal || name == External32
}

// Find returns the representation with a name for elements e.
func (d *Datareps) Find(name string, e *datatype.Layout) (*Datarep, error) {
	switch name {
	case Native, "":
		return NativeDatarep(e), nil
	case Internal: // ranks of one job share an architecture
		return &Datarep{Name: Internal, Size: e.Size}, nil
	case External32:
		return externalDatarep(e), nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if rep := d.byName[datarepKey{name, e}]; rep != nil {
		return rep, nil
	}
	return nil, fmt.Errorf("%w: %w %.40q is not registered for %s", mpierr.ErrView, mpierr.ErrDatarep, name, e.Name)
}

// NativeDatarep is elements as they lie in memory: nothing is converted.
func NativeDatarep(e *datatype.Layout) *Datarep { return &Datarep{Name: Native, Size: e.Size} }

// externalDatarep is the same on all machines.
func externalDatarep(e *datatype.Layout) *Datarep {
	return &Datarep{
		Name: External32, Size: e.Ext,
		Read: func(dst, src []byte) error {
			e.FromExternal(dst, src, len(dst)/e.Size)
			return nil
		},
		Write: func(dst, src []byte) error {
			_, _, err := e.ToExternal(dst, src, len(src)/e.Size)
			return err
		},
	}
}
