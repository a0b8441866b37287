package mpi

import "sync"

// builtinTuning returns the table without additions. For each collective that
// reduces it begins with strict algorithms, so there is one for every call.
var builtinTuning = sync.OnceValue(func() *Tuning {
	t := new(Tuning)
	for _, r := range []Rule{
		{Coll: CollBarrier, Algorithm: "dissemination"},
		{Coll: CollBcast, Algorithm: "binomial"},
		{Coll: CollBcast, Algorithm: "scatter-ring", MinRanks: 8, MinBytes: 128 << 10},
		{Coll: CollBcast, Algorithm: "chain", MinRanks: 3, MinBytes: 1 << 20},
		{Coll: CollReduce, Algorithm: "linear"},
		{Coll: CollReduce, Algorithm: "binomial"},
		{Coll: CollReduce, Algorithm: "rabenseifner", MinRanks: 4, MinBytes: 64 << 10},
		{Coll: CollAllreduce, Algorithm: "linear"},
		{Coll: CollAllreduce, Algorithm: "ordered", MinBytes: 8 << 10},
		{Coll: CollAllreduce, Algorithm: "doubling"},
		{Coll: CollAllreduce, Algorithm: "rabenseifner", MinRanks: 3, MinBytes: 16 << 10},
		{Coll: CollAllreduce, Algorithm: "ring", MinRanks: 3, MinBytes: 1 << 20},
		{Coll: CollGather, Algorithm: "binomial"},
		{Coll: CollGather, Algorithm: "linear", MinBytes: 8 << 10},
		{Coll: CollGatherv, Algorithm: "linear"},
		{Coll: CollScatter, Algorithm: "binomial"},
		{Coll: CollScatter, Algorithm: "linear", MinBytes: 8 << 10},
		{Coll: CollScatterv, Algorithm: "linear"},
		{Coll: CollAllgather, Algorithm: "bruck"},
		{Coll: CollAllgather, Algorithm: "doubling"},
		{Coll: CollAllgather, Algorithm: "ring", MinRanks: 3, MinBytes: 16 << 10},
		{Coll: CollAllgather, Algorithm: "neighbor", MinRanks: 4, MinBytes: 16 << 10},
		{Coll: CollAllgatherv, Algorithm: "ring"},
		{Coll: CollAlltoall, Algorithm: "linear"},
		{Coll: CollAlltoall, Algorithm: "pairwise", MinBytes: 32 << 10},
		{Coll: CollAlltoallv, Algorithm: "linear"},
		{Coll: CollReduceScatter, Algorithm: "ordered"},
		{Coll: CollReduceScatter, Algorithm: "halving"},
		{Coll: CollReduceScatter, Algorithm: "pairwise", MinRanks: 3, MinBytes: 512 << 10},
		{Coll: CollReduceScatterBlock, Algorithm: "ordered"},
		{Coll: CollReduceScatterBlock, Algorithm: "halving"},
		{Coll: CollReduceScatterBlock, Algorithm: "pairwise", MinRanks: 3, MinBytes: 512 << 10},
		{Coll: CollScan, Algorithm: "linear"},
		{Coll: CollScan, Algorithm: "doubling"},
		{Coll: CollExscan, Algorithm: "linear"},
		{Coll: CollExscan, Algorithm: "doubling"},
	} {
		if err := t.Add(r); err != nil {
			panic(err) // the table above names an algorithm that does not exist
		}
	}
	return t
})
