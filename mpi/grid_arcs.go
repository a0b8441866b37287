package mpi

// gridArcs returns the edges of a grid.
func gridArcs(dims []int, periods []bool) [][]arc {
	n := 1
	for _, d := range dims {
		n *= d
	}
	arcs := make([][]arc, n)
	for i := range arcs {
		stride := 1
		for k := len(dims) - 1; k >= 0; k-- {
			at := i / stride % dims[k]
			up := i + stride
			if at == dims[k]-1 {
				up -= dims[k] * stride
			}
			if up != i && (at < dims[k]-1 || periods[k]) {
				arcs[i], arcs[up] = append(arcs[i], arc{up, 1}), append(arcs[up], arc{i, 1})
			}
			stride *= dims[k]
		}
	}
	return arcs
}

// gridBlocks tries all ways to cut a grid into equal blocks, one for each host.
func gridBlocks(dims []int) func(sizes []int, try func(placement)) {
	return func(sizes []int, try func(placement)) {
		for _, s := range sizes {
			if s != sizes[0] {
				return
			}
		}
		block := make([]int, len(dims))
		var choose func(k, left int)
		choose = func(k, left int) {
			if k == len(dims) {
				if left == 1 {
					try(inBlocks(dims, block))
				}
				return
			}
			for b := 1; b <= min(left, dims[k]); b++ {
				if left%b == 0 && dims[k]%b == 0 {
					block[k] = b
					choose(k+1, left/b)
				}
			}
		}
		choose(0, sizes[0])
	}
}

// inBlocks is a grid cut into blocks.
func inBlocks(dims, block []int) placement {
	n := 1
	for _, d := range dims {
		n *= d
	}
	p := make(placement, n)
	for i := range p {
		stride, hosts := 1, 1
		for k := len(dims) - 1; k >= 0; k-- {
			p[i] += i / stride % dims[k] / block[k] * hosts
			stride *= dims[k]
			hosts *= dims[k] / block[k]
		}
	}
	return p
}
