package environment

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	layouts "github.com/weftstack/weft/mpi/internal/datatype"
)

// AbiGetVersion is MPI_Abi_get_version.
func AbiGetVersion(major, minor uintptr) int {
	const proc = "MPI_Abi_get_version"
	if err := cbinding.SetInt(major, abi.AbiVersion, false); err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.SetInt(minor, abi.AbiSubversion, false))
}

// AbiGetInfo is MPI_Abi_get_info: the sizes of integers that the ABI leaves open.
func AbiGetInfo(info uintptr) int {
	i := cbinding.NewInfo(nil)
	for _, key := range []string{"mpi_aint_size", "mpi_count_size", "mpi_offset_size"} {
		i.Set(key, "8")
	}
	return cbinding.Fail("MPI_Abi_get_info", cbinding.NewInfoHandle(info, i))
}

// fortranInfo returns what the library takes for granted of the Fortran compiler: the sizes of types, and
// which of the optional ones there are.
func fortranInfo() *cbinding.Info {
	i := cbinding.NewInfo(nil)
	for _, n := range layouts.Predefined() {
		name := strings.ToLower(n.Name)
		switch strings.TrimRight(n.Name, "1234567890") {
		case "MPI_LOGICAL", "MPI_INTEGER", "MPI_REAL", "MPI_DOUBLE_PRECISION", "MPI_COMPLEX", "MPI_DOUBLE_COMPLEX":
		default:
			continue
		}
		switch n.Name {
		case "MPI_LOGICAL", "MPI_INTEGER", "MPI_REAL", "MPI_DOUBLE_PRECISION":
			i.Set(name+"_size", strconv.Itoa(n.Size()))
		case "MPI_COMPLEX":
		default:
			i.Set(name+"_supported", "true")
		}
	}
	return i
}

// AbiGetFortranInfo is MPI_Abi_get_fortran_info.
func AbiGetFortranInfo(info uintptr) int {
	return cbinding.Fail("MPI_Abi_get_fortran_info", cbinding.NewInfoHandle(info, fortranInfo()))
}

// AbiSetFortranInfo is MPI_Abi_set_fortran_info. Datatypes of Fortran have fixed sizes, so that other ones
// give MPI_ERR_ABI.
func AbiSetFortranInfo(info abi.Handle) int {
	const proc = "MPI_Abi_set_fortran_info"
	hints, err := cbinding.HintsOf(info)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	own := fortranInfo()
	for _, key := range hints.Keys() {
		want, known := own.Get(key)
		if v := hints[key]; known && v != want && v != "false" {
			return cbinding.Fail(proc, cbinding.ArgError(abi.ErrAbi, "info", key+"="+v, "is fixed to "+want))
		}
	}
	return 0
}

// The values of .TRUE. and .FALSE. in datatypes of Fortran: those of gfortran.
const (
	fortranTrue  = 1
	fortranFalse = 0
)

// logicalBytes returns the memory of a LOGICAL of a size.
func logicalBytes(name string, p uintptr, size int) ([]byte, error) {
	switch size {
	case 1, 2, 4, 8, 16:
	default:
		return nil, cbinding.ArgError(abi.ErrArg, "logical_size", size, "is no size of a LOGICAL")
	}
	if p == 0 {
		return nil, cbinding.NullError(name)
	}
	return cbinding.Array[byte](p, size), nil
}

// AbiGetFortranBooleans is MPI_Abi_get_fortran_booleans.
func AbiGetFortranBooleans(size int, logicalTrue, logicalFalse, isSet uintptr) int {
	const proc = "MPI_Abi_get_fortran_booleans"
	for _, x := range []struct {
		name  string
		p     uintptr
		value byte
	}{{"logical_true", logicalTrue, fortranTrue}, {"logical_false", logicalFalse, fortranFalse}} {
		b, err := logicalBytes(x.name, x.p, size)
		if err != nil {
			return cbinding.Fail(proc, err)
		}
		clear(b)
		b[0] = x.value
	}
	return cbinding.Fail(proc, cbinding.SetFlag(isSet, true))
}

// AbiSetFortranBooleans is MPI_Abi_set_fortran_booleans. Other values than those of
// MPI_Abi_get_fortran_booleans give MPI_ERR_ABI.
func AbiSetFortranBooleans(size int, logicalTrue, logicalFalse uintptr) int {
	const proc = "MPI_Abi_set_fortran_booleans"
	for _, x := range []struct {
		name  string
		p     uintptr
		value byte
	}{{"logical_true", logicalTrue, fortranTrue}, {"logical_false", logicalFalse, fortranFalse}} {
		b, err := logicalBytes(x.name, x.p, size)
		if err != nil {
			return cbinding.Fail(proc, err)
		}
		for i, v := range b {
			if i == 0 && v != x.value || i > 0 && v != 0 {
				return cbinding.Fail(proc, cbinding.ArgError(abi.ErrAbi, x.name, fmt.Sprintf("% x", b),
					fmt.Sprintf("is fixed to %d", x.value)))
			}
		}
	}
	return 0
}

// GetHwResourceInfo is MPI_Get_hw_resource_info.
func GetHwResourceInfo(info uintptr) int {
	return cbinding.Fail("MPI_Get_hw_resource_info", cbinding.NewInfoHandle(info, cbinding.NewInfo(mpi.HardwareInfo())))
}
