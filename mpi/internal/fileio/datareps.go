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

// MaxDatarep bounds the length of the name of a data representation, in bytes.
const MaxDatarep = 128

// Datareps are the data representations that a program has registered. The zero value has none.
type Datareps struct {
	mu     sync.Mutex
	byName map[datarepKey]*Datarep
}

// datarepKey names a registered representation: the same name may be used for several types. elem is
// nil for one of items of all datatypes.
type datarepKey struct {
	name string
	elem *datatype.Layout
}

// AddElements registers a representation of elements. It returns ErrDatarep for a name that is taken.
func (d *Datareps) AddElements(name string, e *Elements) error {
	return d.add(datarepKey{name, e.Elem}, &Datarep{name, e})
}

// AddItems registers a representation of items of all datatypes. It returns ErrDatarep for a name
// that is taken.
func (d *Datareps) AddItems(name string, r *Items) error {
	rep := &Datarep{name, r}
	if r.Read == nil && r.Write == nil {
		rep.conv = nil
	}
	return d.add(datarepKey{name: name}, rep)
}

func (d *Datareps) add(key datarepKey, rep *Datarep) error {
	if key.name == "" || len(key.name) > MaxDatarep {
		return fmt.Errorf("%w: a name of %d bytes for a data representation: at least 1 and at most %d",
			mpierr.ErrOption, len(key.name), MaxDatarep)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if predefined(key.name) || d.byName[key] != nil {
		return mpierr.WithClass(mpierr.ClassDupDatarep, fmt.Errorf("%w: %q is known already", mpierr.ErrDatarep, key.name))
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

// Find returns the representation with a name for elements e, or, if e is nil, for items of all
// datatypes, with the elements of etype.
func (d *Datareps) Find(name string, e *datatype.Layout, etype *datatype.Type) (*Datarep, error) {
	switch name {
	case Native, "":
		return NativeDatarep(), nil
	case Internal: // ranks of one job share an architecture
		return &Datarep{Name: Internal}, nil
	case External32:
		if e == nil {
			return &Datarep{External32, external32{}}, nil
		}
		return externalElements(e), nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if e == nil {
		if rep := d.byName[datarepKey{name: name}]; rep != nil {
			return rep, nil
		}
		if etype != nil {
			e, _ = etype.Uniform()
		}
	}
	if rep := d.byName[datarepKey{name, e}]; rep != nil {
		return rep, nil
	}
	of := etype.String()
	if e != nil {
		of = e.Name
	}
	return nil, mpierr.WithClass(mpierr.ClassDatarep,
		fmt.Errorf("%w: %w %.140q is not registered for %s", mpierr.ErrView, mpierr.ErrDatarep, name, of))
}

// NativeDatarep is data as it lies in memory: nothing is converted.
func NativeDatarep() *Datarep { return &Datarep{Name: Native} }

// externalElements is external32 of elements of a Go type.
func externalElements(e *datatype.Layout) *Datarep {
	return &Datarep{External32, &Elements{
		Elem: e, Size: e.Ext,
		Read: func(dst, src []byte) error {
			e.FromExternal(dst, src, len(dst)/e.Size)
			return nil
		},
		Write: func(dst, src []byte) error {
			_, _, err := e.ToExternal(dst, src, len(src)/e.Size)
			return err
		},
	}}
}
