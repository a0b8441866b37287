package cbinding

import (
	"fmt"
	"slices"
	"sync"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// A keyval is an attribute key. Its number is valid until MPI_Comm_free_keyval and the deletion of all
// attributes of the key, whichever comes last (MPI-4.1, Section 7.7.2): programs that have kept the
// number may delete them with it.
type keyval struct {
	number       int
	scope        KeyScope
	copy, delete uintptr // functions of C, or MPI_COMM_DUP_FN, or 0: MPI_COMM_NULL_COPY_FN
	extra        uintptr

	mu    sync.Mutex
	freed bool
	uses  int // attributes
}

// use notes that there is one attribute more, or less.
func (k *keyval) use(n int) {
	k.mu.Lock()
	k.uses += n
	k.mu.Unlock()
	k.forget()
}

// free is MPI_Comm_free_keyval.
func (k *keyval) free() {
	k.mu.Lock()
	k.freed = true
	k.mu.Unlock()
	k.forget()
}

// forget makes the number invalid if nothing needs it.
func (k *keyval) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.freed && k.uses == 0 {
		keyvals.Delete(abi.Handle(uint(k.number)))
	}
}

// A KeyScope says what a key is for.
type KeyScope uint8

const (
	OfCommKey KeyScope = iota
	OfWinKey
	OfTypeKey
)

var keyScopes = [...]string{OfCommKey: "communicators", OfWinKey: "windows", OfTypeKey: "datatypes"}

// Attributes are those of one object, in the order in which they were attached.
type Attributes struct {
	mu   sync.Mutex
	list []attribute
}

type attribute struct {
	key   *keyval
	value uintptr
}

// find returns the index of an attribute, or -1. a.mu is held.
func (a *Attributes) find(k *keyval) int {
	return slices.IndexFunc(a.list, func(x attribute) bool { return x.key == k })
}

func (a *Attributes) get(k *keyval) (uintptr, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.find(k); i >= 0 {
		return a.list[i].value, true
	}
	return 0, false
}

// set attaches a value to the object with handle h. A value that was there is dropped first.
func (a *Attributes) set(h abi.Handle, k *keyval, value uintptr) error {
	if err := a.delete(h, k); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, attribute{k, value})
	k.use(1)
	return nil
}

// delete drops an attribute, if there is one. It stays if its delete function returns an error.
func (a *Attributes) delete(h abi.Handle, k *keyval) error {
	v, ok := a.get(k)
	if !ok {
		return nil
	}
	if err := k.drop(h, v); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.find(k); i >= 0 {
		a.list = slices.Delete(a.list, i, i+1)
		k.use(-1)
	}
	return nil
}

// Drop deletes all attributes of the object with handle h, the last attached first (MPI-4.1, Section
// 11.2.4), until a delete function returns an error.
func (a *Attributes) Drop(h abi.Handle) error {
	for {
		a.mu.Lock()
		n := len(a.list)
		if n == 0 {
			a.mu.Unlock()
			return nil
		}
		k := a.list[n-1].key
		a.mu.Unlock()
		if err := a.delete(h, k); err != nil {
			return err
		}
	}
}

// CopyTo gives a duplicate of the object with handle h the attributes that their copy functions copy.
// If one returns an error, those that the duplicate has so far are for the caller to drop.
func (a *Attributes) CopyTo(to *Attributes, h abi.Handle) error {
	a.mu.Lock()
	list := slices.Clone(a.list)
	a.mu.Unlock()
	for _, x := range list {
		value, ok := x.value, x.key.copy == abi.CommDupFn
		if !ok && x.key.copy != abi.CommNullCopyFn {
			var code int
			value, ok, code = CallCopyAttr(x.key.copy, h, x.key.number, x.key.extra, x.value)
			if code != 0 {
				return userCode(code)
			}
		}
		if ok {
			to.mu.Lock()
			to.list = append(to.list, attribute{x.key, value})
			x.key.use(1)
			to.mu.Unlock()
		}
	}
	return nil
}

// drop calls the delete function of a key.
func (k *keyval) drop(h abi.Handle, value uintptr) error {
	if k.delete == abi.CommNullDeleteFn {
		return nil
	}
	if code := CallDeleteAttr(k.delete, h, k.number, value, k.extra); code != 0 {
		return userCode(code)
	}
	return nil
}

// CreateKeyval makes a key.
func CreateKeyval(proc string, scope KeyScope, copyFn, deleteFn, result, extra uintptr) int {
	if result == 0 {
		return Fail(proc, NullError("keyval"))
	}
	k := &keyval{scope: scope, copy: copyFn, delete: deleteFn, extra: extra}
	h, err := keyvals.Put(k)
	if err != nil {
		return Fail(proc, err)
	}
	k.number = int(h)
	return Fail(proc, SetInt(result, k.number, false))
}

// FreeKeyval frees the number of a key.
func FreeKeyval(proc string, scope KeyScope, number uintptr) int {
	if number == 0 {
		return Fail(proc, NullError("keyval"))
	}
	n := int(*At[int32](number))
	k, err := keyOf(scope, n)
	if err != nil {
		return Fail(proc, err)
	}
	k.free()
	return Fail(proc, SetInt(number, abi.KeyvalInvalid, false))
}

// keyOf returns the key with a number that the program has made for objects of a kind.
func keyOf(scope KeyScope, number int) (*keyval, error) {
	if number == abi.KeyvalInvalid {
		return nil, early(ArgError(abi.ErrKeyval, "keyval", "MPI_KEYVAL_INVALID", "is no key"))
	}
	if number > 0 && number < abi.MaxPredefined {
		return nil, early(ArgError(abi.ErrKeyval, "keyval", number, "is predefined or no key"))
	}
	k, err := keyvalOf(number)
	if err == nil && k.scope != scope {
		err = ArgError(abi.ErrKeyval, "keyval", number, fmt.Sprintf("is a key of %s, not %s", keyScopes[k.scope], keyScopes[scope]))
	}
	if err != nil {
		err = early(err)
	}
	return k, err
}

// SetAttr attaches a value.
func (a *Attributes) SetAttr(h abi.Handle, scope KeyScope, number int, value uintptr) error {
	k, err := keyOf(scope, number)
	if err != nil {
		return err
	}
	return a.set(h, k, value)
}

// DeleteAttr deletes an attribute.
func (a *Attributes) DeleteAttr(h abi.Handle, scope KeyScope, number int) error {
	k, err := keyOf(scope, number)
	if err != nil {
		return err
	}
	return a.delete(h, k)
}

// GetAttr stores the value of an attribute and whether there is one. predefined returns that of a
// predefined key.
func (a *Attributes) GetAttr(scope KeyScope, number int, value, flag uintptr,
	predefined func(key int) (uintptr, bool)) error {
	if value == 0 || flag == 0 {
		return NullError("attribute_val or flag")
	}
	var v uintptr
	var ok, known bool
	if number > 0 && number < abi.MaxPredefined && predefined != nil {
		v, known = predefined(number)
		ok = v != 0
	}
	if !known {
		k, err := keyOf(scope, number)
		if err != nil {
			return err
		}
		v, ok = a.get(k)
	}
	if ok {
		*At[uintptr](value) = v
	}
	return SetFlag(flag, ok)
}
