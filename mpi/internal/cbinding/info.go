package cbinding

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// An info is an MPI_Info: keys, in the order in which they were set, and values.
type info struct {
	mu   sync.Mutex
	keys []string
	vals map[string]string
}

// newInfo makes the info object of hints of package mpi.
func newInfo(from mpi.Info) *info { return &info{keys: from.Keys(), vals: maps.Clone(from)} }

// infoOf returns the info object of a handle, for calls that need one.
func infoOf(h Handle) (*info, error) { return infos.lookup(h) }

// hintsOf returns the hints of a handle as package mpi takes them. MPI_INFO_NULL has none.
func hintsOf(h Handle) (mpi.Info, error) {
	if h == abi.InfoNull {
		return nil, nil
	}
	i, err := infoOf(h)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.vals), nil
}

// infoMemoryKinds is the info key of sessions and communicators for the kinds of memory that calls take
// (MPI-4.1, Section 11.4.3).
const infoMemoryKinds = "mpi_memory_alloc_kinds"

// usedInfo makes the info object of the hints of a session or communicator.
func usedInfo(from mpi.Info) *info {
	i := newInfo(from)
	i.set(infoMemoryKinds, "mpi,system")
	return i
}

// newInfoHandle stores the handle of a new info object at p.
func newInfoHandle(p uintptr, i *info) error {
	if p == 0 {
		return nullError("info")
	}
	h, err := infos.put(i)
	if err == nil {
		setHandle(p, h)
	}
	return err
}

func init() { atStart(func() { infos.set(abi.InfoEnv, usedInfo(mpi.EnvInfo())) }) }

// get returns the value of a key.
func (i *info) get(key string) (string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	v, ok := i.vals[key]
	return v, ok
}

// set sets a key.
func (i *info) set(key, value string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, ok := i.vals[key]; !ok {
		i.keys = append(i.keys, key)
	}
	if i.vals == nil {
		i.vals = make(map[string]string)
	}
	i.vals[key] = value
}

// keyOfInfo reads a key.
func keyOfInfo(p uintptr) (string, error) {
	key, err := str("key", p, abi.MaxInfoKey)
	if err != nil {
		return "", withClass(err, abi.ErrInfoKey)
	}
	if key == "" {
		return "", argError(abi.ErrInfoKey, "key", `""`, "is empty")
	}
	return key, nil
}

// InfoCreate is MPI_Info_create.
func InfoCreate(info uintptr) int {
	return fail("MPI_Info_create", newInfoHandle(info, newInfo(nil)))
}

// InfoCreateEnv is MPI_Info_create_env. The arguments are those of the process without it.
func InfoCreateEnv(argc int, argv, info uintptr) int {
	const proc = "MPI_Info_create_env"
	i := newInfo(mpi.EnvInfo())
	if argc > 0 && argv != 0 {
		var args []string
		for _, p := range array[uintptr](argv, argc) {
			if p == 0 {
				break
			}
			s, err := str("argv", p, maxArgument)
			if err != nil {
				return fail(proc, err)
			}
			args = append(args, s)
		}
		if len(args) > 0 {
			i.set("command", args[0])
			i.set("argv", strings.Join(args[1:], " "))
		}
	}
	return fail(proc, newInfoHandle(info, i))
}

// InfoDelete is MPI_Info_delete.
func InfoDelete(info Handle, key uintptr) int {
	const proc = "MPI_Info_delete"
	i, err := infoOf(info)
	if err != nil {
		return fail(proc, err)
	}
	k, err := keyOfInfo(key)
	if err != nil {
		return fail(proc, err)
	}
	i.mu.Lock()
	n := slices.Index(i.keys, k)
	if n >= 0 {
		i.keys = slices.Delete(i.keys, n, n+1)
		delete(i.vals, k)
	}
	i.mu.Unlock()
	if n < 0 {
		return fail(proc, argError(abi.ErrInfoNokey, "key", k, "is not set"))
	}
	return 0
}

// InfoDup is MPI_Info_dup. The keys have the same order.
func InfoDup(info Handle, newinfo uintptr) int {
	const proc = "MPI_Info_dup"
	i, err := infoOf(info)
	if err != nil {
		return fail(proc, err)
	}
	i.mu.Lock()
	d := newInfo(i.vals)
	d.keys = slices.Clone(i.keys)
	i.mu.Unlock()
	return fail(proc, newInfoHandle(newinfo, d))
}

// InfoFree is MPI_Info_free.
func InfoFree(info uintptr) int {
	const proc = "MPI_Info_free"
	if info == 0 {
		return fail(proc, nullError("info"))
	}
	h := *at[Handle](info)
	if _, err := infoOf(h); err != nil {
		return fail(proc, err)
	}
	if !infos.delete(h) {
		return fail(proc, argError(abi.ErrInfo, "info", "MPI_INFO_ENV", "cannot be freed"))
	}
	setHandle(info, abi.InfoNull)
	return 0
}

// value looks a key up for the calls that get values.
func value(info Handle, key, flag uintptr) (v string, found bool, err error) {
	i, err := infoOf(info)
	if err != nil {
		return "", false, err
	}
	k, err := keyOfInfo(key)
	if err != nil {
		return "", false, err
	}
	v, found = i.get(k)
	return v, found, setFlag(flag, found)
}

// InfoGet is MPI_Info_get. The value has room for valuelen characters and a 0.
func InfoGet(info Handle, key uintptr, valuelen int, val, flag uintptr) int {
	const proc = "MPI_Info_get"
	if valuelen < 0 {
		return fail(proc, argError(abi.ErrArg, "valuelen", valuelen, "is negative"))
	}
	v, found, err := value(info, key, flag)
	if err == nil && found {
		err = setStr(val, 0, v, valuelen+1)
	}
	return fail(proc, err)
}

// InfoGetString is MPI_Info_get_string. buflen counts the 0 at the end, on its way in and out; if it is 0
// the value is not stored.
func InfoGetString(info Handle, key, buflen, val, flag uintptr) int {
	const proc = "MPI_Info_get_string"
	if buflen == 0 {
		return fail(proc, nullError("buflen"))
	}
	n := int(*at[int32](buflen))
	if n < 0 {
		return fail(proc, argError(abi.ErrArg, "buflen", n, "is negative"))
	}
	v, found, err := value(info, key, flag)
	if err == nil && found {
		if err = setStr(val, 0, v, n); err == nil {
			err = setInt(buflen, len(v)+1, false)
		}
	}
	return fail(proc, err)
}

// InfoGetValuelen is MPI_Info_get_valuelen.
func InfoGetValuelen(info Handle, key, valuelen, flag uintptr) int {
	v, found, err := value(info, key, flag)
	if err == nil && found {
		err = setInt(valuelen, len(v), false)
	}
	return fail("MPI_Info_get_valuelen", err)
}

// InfoGetNkeys is MPI_Info_get_nkeys.
func InfoGetNkeys(info Handle, nkeys uintptr) int {
	const proc = "MPI_Info_get_nkeys"
	i, err := infoOf(info)
	if err != nil {
		return fail(proc, err)
	}
	i.mu.Lock()
	n := len(i.keys)
	i.mu.Unlock()
	return fail(proc, setInt(nkeys, n, false))
}

// InfoGetNthkey is MPI_Info_get_nthkey.
func InfoGetNthkey(info Handle, n int, key uintptr) int {
	const proc = "MPI_Info_get_nthkey"
	i, err := infoOf(info)
	if err != nil {
		return fail(proc, err)
	}
	i.mu.Lock()
	k, found := "", n >= 0 && n < len(i.keys)
	if found {
		k = i.keys[n]
	}
	i.mu.Unlock()
	if !found {
		return fail(proc, argError(abi.ErrArg, "n", n, "is not the number of one of the keys"))
	}
	return fail(proc, setStr(key, 0, k, abi.MaxInfoKey))
}

// InfoSet is MPI_Info_set.
func InfoSet(info Handle, key, val uintptr) int {
	const proc = "MPI_Info_set"
	i, err := infoOf(info)
	if err != nil {
		return fail(proc, err)
	}
	k, err := keyOfInfo(key)
	if err != nil {
		return fail(proc, err)
	}
	v, err := str("value", val, abi.MaxInfoVal)
	if err != nil {
		return fail(proc, withClass(err, abi.ErrInfoValue))
	}
	i.set(k, v)
	return 0
}
