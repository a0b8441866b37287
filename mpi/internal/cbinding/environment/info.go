package environment

import (
	"slices"
	"strings"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// keyOfInfo reads a key.
func keyOfInfo(p uintptr) (string, error) {
	key, err := cbinding.Str("key", p, abi.MaxInfoKey)
	if err != nil {
		return "", cbinding.WithClass(err, abi.ErrInfoKey)
	}
	if key == "" {
		return "", cbinding.ArgError(abi.ErrInfoKey, "key", `""`, "is empty")
	}
	return key, nil
}

// InfoCreate is MPI_Info_create.
func InfoCreate(info uintptr) int {
	return cbinding.Fail("MPI_Info_create", cbinding.NewInfoHandle(info, cbinding.NewInfo(nil)))
}

// InfoCreateEnv is MPI_Info_create_env. The arguments are those of the process without it.
func InfoCreateEnv(argc int, argv, info uintptr) int {
	const proc = "MPI_Info_create_env"
	i := cbinding.NewInfo(mpi.EnvInfo())
	if argc > 0 && argv != 0 {
		var args []string
		for _, p := range cbinding.Array[uintptr](argv, argc) {
			if p == 0 {
				break
			}
			s, err := cbinding.Str("argv", p, cbinding.MaxArgument)
			if err != nil {
				cbinding.NullHandle(info, abi.InfoNull)
				return cbinding.Fail(proc, err)
			}
			args = append(args, s)
		}
		if len(args) > 0 {
			i.Set("command", args[0])
			i.Set("argv", strings.Join(args[1:], " "))
		}
	}
	return cbinding.Fail(proc, cbinding.NewInfoHandle(info, i))
}

// InfoDelete is MPI_Info_delete.
func InfoDelete(info abi.Handle, key uintptr) int {
	const proc = "MPI_Info_delete"
	i, err := cbinding.InfoOf(info)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	k, err := keyOfInfo(key)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	i.Mu.Lock()
	n := slices.Index(i.Keys, k)
	if n >= 0 {
		i.Keys = slices.Delete(i.Keys, n, n+1)
		delete(i.Vals, k)
	}
	i.Mu.Unlock()
	if n < 0 {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrInfoNokey, "key", k, "is not set"))
	}
	return 0
}

// InfoDup is MPI_Info_dup. The keys have the same order.
func InfoDup(info abi.Handle, newinfo uintptr) int {
	const proc = "MPI_Info_dup"
	cbinding.NullHandle(newinfo, abi.InfoNull)
	i, err := cbinding.InfoOf(info)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	i.Mu.Lock()
	d := cbinding.NewInfo(i.Vals)
	d.Keys = slices.Clone(i.Keys)
	i.Mu.Unlock()
	return cbinding.Fail(proc, cbinding.NewInfoHandle(newinfo, d))
}

// InfoFree is MPI_Info_free.
func InfoFree(info uintptr) int {
	const proc = "MPI_Info_free"
	if info == 0 {
		return cbinding.Fail(proc, cbinding.NullError("info"))
	}
	h := *cbinding.At[abi.Handle](info)
	if _, err := cbinding.InfoOf(h); err != nil {
		return cbinding.Fail(proc, err)
	}
	if !cbinding.Infos.Delete(h) {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrInfo, "info", "MPI_INFO_ENV", "cannot be freed"))
	}
	cbinding.SetHandle(info, abi.InfoNull)
	return 0
}

// value looks a key up for the calls that get values.
func value(info abi.Handle, key, flag uintptr) (v string, found bool, err error) {
	i, err := cbinding.InfoOf(info)
	if err != nil {
		return "", false, err
	}
	k, err := keyOfInfo(key)
	if err != nil {
		return "", false, err
	}
	v, found = i.Get(k)
	return v, found, cbinding.SetFlag(flag, found)
}

// InfoGet is MPI_Info_get. The value has room for valuelen characters and a 0.
func InfoGet(info abi.Handle, key uintptr, valuelen int, val, flag uintptr) int {
	const proc = "MPI_Info_get"
	if valuelen < 0 {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "valuelen", valuelen, "is negative"))
	}
	v, found, err := value(info, key, flag)
	if err == nil && found {
		err = cbinding.SetStr(val, 0, v, valuelen+1)
	}
	return cbinding.Fail(proc, err)
}

// InfoGetString is MPI_Info_get_string. buflen counts the 0 at the end, on its way in and out; if it is 0
// the value is not stored.
func InfoGetString(info abi.Handle, key, buflen, val, flag uintptr) int {
	const proc = "MPI_Info_get_string"
	if buflen == 0 {
		return cbinding.Fail(proc, cbinding.NullError("buflen"))
	}
	n := int(*cbinding.At[int32](buflen))
	if n < 0 {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "buflen", n, "is negative"))
	}
	v, found, err := value(info, key, flag)
	if err == nil && found {
		if err = cbinding.SetStr(val, 0, v, n); err == nil {
			err = cbinding.SetInt(buflen, len(v)+1, false)
		}
	}
	return cbinding.Fail(proc, err)
}

// InfoGetValuelen is MPI_Info_get_valuelen.
func InfoGetValuelen(info abi.Handle, key, valuelen, flag uintptr) int {
	v, found, err := value(info, key, flag)
	if err == nil && found {
		err = cbinding.SetInt(valuelen, len(v), false)
	}
	return cbinding.Fail("MPI_Info_get_valuelen", err)
}

// InfoGetNkeys is MPI_Info_get_nkeys.
func InfoGetNkeys(info abi.Handle, nkeys uintptr) int {
	const proc = "MPI_Info_get_nkeys"
	i, err := cbinding.InfoOf(info)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	i.Mu.Lock()
	n := len(i.Keys)
	i.Mu.Unlock()
	return cbinding.Fail(proc, cbinding.SetInt(nkeys, n, false))
}

// InfoGetNthkey is MPI_Info_get_nthkey.
func InfoGetNthkey(info abi.Handle, n int, key uintptr) int {
	const proc = "MPI_Info_get_nthkey"
	i, err := cbinding.InfoOf(info)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	i.Mu.Lock()
	k, found := "", n >= 0 && n < len(i.Keys)
	if found {
		k = i.Keys[n]
	}
	i.Mu.Unlock()
	if !found {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "n", n, "is not the number of one of the keys"))
	}
	return cbinding.Fail(proc, cbinding.SetStr(key, 0, k, abi.MaxInfoKey))
}

// InfoSet is MPI_Info_set.
func InfoSet(info abi.Handle, key, val uintptr) int {
	const proc = "MPI_Info_set"
	i, err := cbinding.InfoOf(info)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	k, err := keyOfInfo(key)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	v, err := cbinding.Str("value", val, abi.MaxInfoVal)
	if err != nil {
		return cbinding.Fail(proc, cbinding.WithClass(err, abi.ErrInfoValue))
	}
	i.Set(k, v)
	return 0
}
