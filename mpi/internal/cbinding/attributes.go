package cbinding

import "sync"

// A keyval is an attribute key. MPI_Comm_free_keyval takes its number away; attributes that exist
// keep it.
type keyval struct {
	number       int
	scope        keyScope
	copy, delete uintptr // functions of C, or special values
	extra        uintptr
}

type keyScope uint8

const (
	ofCommKey keyScope = iota
	ofWinKey
	ofTypeKey
)

// attributes are those of one object, in the order in which they were attached.
type attributes struct {
	mu   sync.Mutex
	list []attribute
}

type attribute struct {
	key   *keyval
	value uintptr
}

// dropAttributes deletes all attributes, the last attached first (MPI-4.1, Section 11.2.4).
func (o *object) dropAttributes() error { return o.attrs.drop(o.handle) }

// drop calls the delete functions of the attributes of an object and removes them, until one fails.
func (a *attributes) drop(h Handle) error {
	for {
		a.mu.Lock()
		n := len(a.list)
		if n == 0 {
			a.mu.Unlock()
			return nil
		}
		x := a.list[n-1]
		a.mu.Unlock()
		if err := x.key.drop(h, x.value); err != nil {
			return err
		}
		a.mu.Lock()
		for i := len(a.list) - 1; i >= 0; i-- {
			if a.list[i] == x {
				a.list = append(a.list[:i], a.list[i+1:]...)
				break
			}
		}
		a.mu.Unlock()
	}
}

// drop calls the delete function of a key.
func (k *keyval) drop(h Handle, value uintptr) error {
	if k.delete == 0 {
		return nil
	}
	if code := CallDeleteAttr(k.delete, h, k.number, value, k.extra); code != 0 {
		return userCode(code)
	}
	return nil
}
