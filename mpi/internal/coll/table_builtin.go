package coll

import "sync"

// Builtin returns the table without additions, which must not be changed. For each collective that
// reduces it begins with strict algorithms, so there is one for every call. Those called sites serve
// ranks at several sites only; of Gather and Scatter long blocks cross once in any case.
var Builtin = sync.OnceValue(func() *Table {
	t := new(Table)
	for _, r := range []Rule{
		{Kind: Barrier, Algorithm: "dissemination"},
		{Kind: Barrier, Algorithm: "sites"},
		{Kind: Bcast, Algorithm: "binomial"},
		{Kind: Bcast, Algorithm: "scatter-ring", MinRanks: 8, MinBytes: 128 << 10},
		{Kind: Bcast, Algorithm: "chain", MinRanks: 3, MinBytes: 1 << 20},
		{Kind: Bcast, Algorithm: "sites"},
		{Kind: Bcast, Algorithm: "sites-split", MinBytes: 16 << 10},
		{Kind: Reduce, Algorithm: "linear"},
		{Kind: Reduce, Algorithm: "binomial"},
		{Kind: Reduce, Algorithm: "rabenseifner", MinRanks: 4, MinBytes: 64 << 10},
		{Kind: Reduce, Algorithm: "sites"},
		{Kind: Reduce, Algorithm: "sites-split", MinBytes: 16 << 10},
		{Kind: Allreduce, Algorithm: "linear"},
		{Kind: Allreduce, Algorithm: "ordered", MinBytes: 8 << 10},
		{Kind: Allreduce, Algorithm: "doubling"},
		{Kind: Allreduce, Algorithm: "rabenseifner", MinRanks: 3, MinBytes: 16 << 10},
		{Kind: Allreduce, Algorithm: "ring", MinRanks: 3, MinBytes: 1 << 20},
		{Kind: Allreduce, Algorithm: "sites"},
		{Kind: Allreduce, Algorithm: "sites-split", MinBytes: 8 << 10},
		{Kind: Gather, Algorithm: "binomial"},
		{Kind: Gather, Algorithm: "sites"},
		{Kind: Gather, Algorithm: "linear", MinBytes: 8 << 10},
		{Kind: Gatherv, Algorithm: "linear"},
		{Kind: Scatter, Algorithm: "binomial"},
		{Kind: Scatter, Algorithm: "sites"},
		{Kind: Scatter, Algorithm: "linear", MinBytes: 8 << 10},
		{Kind: Scatterv, Algorithm: "linear"},
		{Kind: Allgather, Algorithm: "bruck"},
		{Kind: Allgather, Algorithm: "doubling"},
		{Kind: Allgather, Algorithm: "ring", MinRanks: 3, MinBytes: 16 << 10},
		{Kind: Allgather, Algorithm: "neighbor", MinRanks: 4, MinBytes: 16 << 10},
		{Kind: Allgather, Algorithm: "sites"},
		{Kind: Allgather, Algorithm: "sites-split", MinBytes: 2 << 10},
		{Kind: Allgatherv, Algorithm: "ring"},
		{Kind: Allgatherv, Algorithm: "sites-split"},
		{Kind: Alltoall, Algorithm: "linear"},
		{Kind: Alltoall, Algorithm: "pairwise", MinBytes: 32 << 10},
		{Kind: Alltoall, Algorithm: "sites-direct"},
		{Kind: Alltoall, Algorithm: "sites", MinRanks: 16},
		{Kind: Alltoall, Algorithm: "sites-direct", MinBytes: 128},
		{Kind: Alltoallv, Algorithm: "linear"},
		{Kind: Alltoallv, Algorithm: "sites-direct"},
		{Kind: ReduceScatter, Algorithm: "ordered"},
		{Kind: ReduceScatter, Algorithm: "halving"},
		{Kind: ReduceScatter, Algorithm: "pairwise", MinRanks: 3, MinBytes: 512 << 10},
		{Kind: ReduceScatter, Algorithm: "sites"},
		{Kind: ReduceScatterBlock, Algorithm: "ordered"},
		{Kind: ReduceScatterBlock, Algorithm: "halving"},
		{Kind: ReduceScatterBlock, Algorithm: "pairwise", MinRanks: 3, MinBytes: 512 << 10},
		{Kind: ReduceScatterBlock, Algorithm: "sites"},
		{Kind: Scan, Algorithm: "linear"},
		{Kind: Scan, Algorithm: "doubling"},
		{Kind: Scan, Algorithm: "sites"},
		{Kind: Exscan, Algorithm: "linear"},
		{Kind: Exscan, Algorithm: "doubling"},
		{Kind: Exscan, Algorithm: "sites"},
	} {
		if err := t.Add(r); err != nil {
			panic(err) // the table above names an algorithm that does not exist
		}
	}
	return t
})
