package datatype

import (
	"fmt"
	"math"
	"slices"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// dimensions checks a number of dimensions.
func (m *typeMaker) dimensions(n int) int {
	if m.err == nil && n < 1 {
		m.err = cbinding.ArgError(abi.ErrArg, "ndims", n, "is not positive")
	}
	return max(n, 0)
}

// order returns the order of an array.
func (m *typeMaker) order(order int) mpi.Order {
	switch {
	case order == abi.OrderFortran:
		return mpi.ColumnMajor
	case order != abi.OrderC && m.err == nil:
		m.err = cbinding.ArgError(abi.ErrArg, "order", order, "is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN")
	}
	return mpi.RowMajor
}

// within checks that a number is at least low and at most high.
func (m *typeMaker) within(name string, n, low, high int) {
	if m.err == nil && (n < low || n > high) {
		wrong := fmt.Sprintf("is less than %d", low)
		if n >= low {
			wrong = fmt.Sprintf("is greater than %d", high)
		}
		m.err = cbinding.ArgError(abi.ErrArg, name, n, wrong)
	}
}

// TypeCreateSubarray is MPI_Type_create_subarray.
func TypeCreateSubarray(ndims int, sizes, subsizes, starts uintptr, order int, oldtype abi.Handle,
	newtype uintptr, large bool) int {
	m := makeType("MPI_Type_create_subarray", newtype)
	n := m.dimensions(ndims)
	all := m.ints("array_of_sizes", sizes, n, large)
	sub := m.ints("array_of_subsizes", subsizes, n, large)
	from := m.ints("array_of_starts", starts, n, large)
	o := m.order(order)
	if m.err == nil {
		for i := range n {
			m.within("array_of_sizes", all[i], 1, math.MaxInt)
			m.within("array_of_subsizes", sub[i], 1, all[i])
			m.within("array_of_starts", from[i], 0, all[i]-sub[i])
		}
	}
	t := m.old(oldtype)
	made := cbinding.Recipe{Combiner: abi.CombinerSubarray, Types: []*cbinding.Datatype{t}}
	if made.Integers = slices.Concat([]int{n}, all, sub, from, []int{order}); large {
		made.Integers, made.Counts = []int{n, order}, slices.Concat(all, sub, from)
	}
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeSubarray(all, sub, from, o, t.Datatype) })
}

// TypeCreateDarray is MPI_Type_create_darray.
func TypeCreateDarray(size, rank, ndims int, gsizes, distribs, dargs, psizes uintptr, order int, oldtype abi.Handle,
	newtype uintptr, large bool) int {
	m := makeType("MPI_Type_create_darray", newtype)
	m.within("size", size, 1, math.MaxInt)
	m.within("rank", rank, 0, size-1)
	n := m.dimensions(ndims)
	all := m.ints("array_of_gsizes", gsizes, n, large)
	kinds := m.ints("array_of_distribs", distribs, n, false)
	args := m.ints("array_of_dargs", dargs, n, false)
	grid := m.ints("array_of_psizes", psizes, n, false)
	o := m.order(order)
	var dists []mpi.Dist
	if m.err == nil {
		processes := 1
		for i := range n {
			m.within("array_of_gsizes", all[i], 1, math.MaxInt)
			m.within("array_of_psizes", grid[i], 1, size)
			processes = min(processes*grid[i], size+1) // so that it does not overflow
			dists = append(dists, m.dist(kinds[i], args[i], all[i], grid[i]))
		}
		if m.err == nil && processes != size {
			m.err = cbinding.ArgError(abi.ErrArg, "array_of_psizes", grid, "has another product than size")
		}
	}
	t := m.old(oldtype)
	made := cbinding.Recipe{Combiner: abi.CombinerDarray, Types: []*cbinding.Datatype{t}}
	if made.Integers = slices.Concat([]int{size, rank, n}, all, kinds, args, grid, []int{order}); large {
		made.Integers, made.Counts = slices.Concat([]int{size, rank, n}, kinds, args, grid, []int{order}), all
	}
	return m.end(made, func() (*mpi.Datatype, error) { return mpi.TypeDarray(rank, all, dists, grid, o, t.Datatype) })
}

// dist returns the distribution of n items over p processes.
func (m *typeMaker) dist(kind, arg, n, p int) mpi.Dist {
	if arg == abi.DistributeDfltDarg {
		arg = 0
	} else if kind != abi.DistributeNone {
		m.within("array_of_dargs", arg, 1, math.MaxInt)
	}
	switch kind {
	case abi.DistributeBlock:
		if m.err == nil && arg > 0 && arg < (n+p-1)/p {
			m.err = cbinding.ArgError(abi.ErrArg, "array_of_dargs", arg, "is too small: the blocks do not hold the array")
		}
		return mpi.DistBlock(arg)
	case abi.DistributeCyclic:
		return mpi.DistCyclic(arg)
	case abi.DistributeNone:
		if m.err == nil && p != 1 {
			m.err = cbinding.ArgError(abi.ErrArg, "array_of_psizes", p, "is not 1 where the distribution is MPI_DISTRIBUTE_NONE")
		}
		return mpi.DistNone()
	}
	if m.err == nil {
		m.err = cbinding.ArgError(abi.ErrArg, "array_of_distribs", kind, "is no distribution")
	}
	return mpi.DistNone()
}
