package topology

import (
	"fmt"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// grid returns the arguments of a grid.
func grid(ndims int, dims, periods uintptr) (d []int, p []bool, err error) {
	if ndims < 0 {
		return nil, nil, cbinding.ArgError(abi.ErrDims, "ndims", ndims, "is negative")
	}
	if d, err = cbinding.Ints("dims", dims, ndims, false); err != nil {
		return nil, nil, err
	}
	p, err = flags("periods", periods, ndims)
	return d, p, err
}

// flags returns the n truth values at p.
func flags(name string, p uintptr, n int) ([]bool, error) {
	list, err := cbinding.Ints(name, p, n, false)
	if err != nil {
		return nil, err
	}
	is := make([]bool, len(list))
	for i, x := range list {
		is[i] = x != 0
	}
	return is, nil
}

// CartCreate is MPI_Cart_create.
func CartCreate(commOld abi.Handle, ndims int, dims, periods uintptr, reorder int, commCart uintptr) int {
	cbinding.NullHandle(commCart, abi.CommNull)
	const proc = "MPI_Cart_create"
	c, err := cbinding.CommOf(commOld)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	d, p, err := grid(ndims, dims, periods)
	if err == nil {
		err = cbinding.CommRoom("comm_cart", commCart)
	}
	if err != nil {
		return newTopology(c, proc, commCart, nil, c.Refuse(err, func() {
			_, _ = mpi.NewCart(cbinding.Background, c.Comm, []int{-1}, []bool{false}) // there is no such grid
		}))
	}
	t, err := mpi.NewCart(cbinding.Background, c.Comm, d, p, reordering(reorder)...)
	if t == nil {
		return newTopology(c, proc, commCart, nil, asArgument(abi.ErrDims, err))
	}
	return newTopology(c, proc, commCart, t.Comm(), nil)
}

// CartMap is MPI_Cart_map.
func CartMap(comm abi.Handle, ndims int, dims, periods, newrank uintptr) int {
	const proc = "MPI_Cart_map"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	d, p, err := grid(ndims, dims, periods)
	if err != nil {
		return c.Done(proc, err)
	}
	rank, err := mpi.CartMap(c.Comm, d, p)
	if err != nil {
		return c.Done(proc, asArgument(abi.ErrDims, err))
	}
	return c.Done(proc, cbinding.SetInt(newrank, cbinding.RankToC(rank), false))
}

// CartdimGet is MPI_Cartdim_get.
func CartdimGet(comm abi.Handle, ndims uintptr) int {
	const proc = "MPI_Cartdim_get"
	c, t, code := cartOf(proc, comm)
	if c == nil {
		return code
	}
	return c.Done(proc, cbinding.SetInt(ndims, len(t.Dims()), false))
}

// room checks the length of an array for the dimensions of t.
func room(maxdims int, t *mpi.Cart) error {
	if n := len(t.Dims()); maxdims < n {
		return cbinding.ArgError(abi.ErrArg, "maxdims", maxdims, fmt.Sprintf("is less than %d dimensions", n))
	}
	return nil
}

// CartGet is MPI_Cart_get.
func CartGet(comm abi.Handle, maxdims int, dims, periods, coords uintptr) int {
	const proc = "MPI_Cart_get"
	c, t, code := cartOf(proc, comm)
	if c == nil {
		return code
	}
	if err := room(maxdims, t); err != nil {
		return c.Done(proc, err)
	}
	var rings []int
	for _, p := range t.Periods() {
		ring := 0
		if p {
			ring = 1
		}
		rings = append(rings, ring)
	}
	for _, x := range []struct {
		p uintptr
		v []int
	}{{dims, t.Dims()}, {periods, rings}, {coords, t.Coords(c.Rank())}} {
		if err := cbinding.SetInts(x.p, x.v, false); err != nil {
			return c.Done(proc, err)
		}
	}
	return abi.Success
}

// CartRank is MPI_Cart_rank.
func CartRank(comm abi.Handle, coords, rank uintptr) int {
	const proc = "MPI_Cart_rank"
	c, t, code := cartOf(proc, comm)
	if c == nil {
		return code
	}
	at, err := cbinding.Ints("coords", coords, len(t.Dims()), false)
	if err != nil {
		return c.Done(proc, err)
	}
	r, err := t.Rank(at...)
	if err != nil {
		return c.Done(proc, cbinding.ArgError(abi.ErrArg, "coords", at, fmt.Sprintf("are outside a grid of %v", t.Dims())))
	}
	return c.Done(proc, cbinding.SetInt(rank, r, false))
}

// CartCoords is MPI_Cart_coords.
func CartCoords(comm abi.Handle, rank, maxdims int, coords uintptr) int {
	const proc = "MPI_Cart_coords"
	c, t, code := cartOf(proc, comm)
	if c == nil {
		return code
	}
	if rank < 0 || rank >= c.Size() {
		return c.Done(proc, c.BadRank("rank", rank, abi.ErrRank))
	}
	if err := room(maxdims, t); err != nil {
		return c.Done(proc, err)
	}
	return c.Done(proc, cbinding.SetInts(coords, t.Coords(rank), false))
}

// CartShift is MPI_Cart_shift.
func CartShift(comm abi.Handle, direction, disp int, rankSource, rankDest uintptr) int {
	const proc = "MPI_Cart_shift"
	c, t, code := cartOf(proc, comm)
	if c == nil {
		return code
	}
	if n := len(t.Dims()); direction < 0 || direction >= n {
		return c.Done(proc, cbinding.ArgError(abi.ErrDims, "direction", direction, fmt.Sprintf("is none of %d dimensions", n)))
	}
	from, to, err := t.Shift(direction, disp)
	if err == nil {
		err = cbinding.SetInt(rankSource, cbinding.RankToC(from), false)
	}
	if err == nil {
		err = cbinding.SetInt(rankDest, cbinding.RankToC(to), false)
	}
	return c.Done(proc, err)
}

// CartSub is MPI_Cart_sub.
func CartSub(comm abi.Handle, remainDims, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Cart_sub"
	c, t, code := cartOf(proc, comm)
	if c == nil {
		return code
	}
	keep, err := flags("remain_dims", remainDims, len(t.Dims()))
	if err == nil {
		err = cbinding.CommRoom("newcomm", newcomm)
	}
	if err != nil {
		return newTopology(c, proc, newcomm, nil, c.Refuse(err, func() {
			_, _ = t.Sub(cbinding.Background, make([]bool, len(t.Dims())+1)...) // there is no such dimension
		}))
	}
	s, err := t.Sub(cbinding.Background, keep...)
	if s == nil {
		return newTopology(c, proc, newcomm, nil, err)
	}
	return newTopology(c, proc, newcomm, s.Comm(), nil)
}
