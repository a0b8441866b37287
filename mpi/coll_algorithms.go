package mpi

import "sync"

// algorithms lists what there is, by collective.
var algorithms = [collCount][]algorithm{
	CollBarrier: {
		{name: "dissemination", run: barrierDissemination},
		{name: "tree", run: barrierTree},
	},
	CollBcast: {
		{name: "binomial", run: bcastBinomial},
		{name: "scatter-ring", run: bcastScatterRing},
		{name: "scatter-doubling", run: bcastScatterDoubling, can: powerOfTwo},
		{name: "chain", run: bcastChain},
		{name: "linear", run: bcastLinear},
	},
	CollReduce: {
		{name: "binomial", run: reduceBinomial},
		{name: "rabenseifner", run: reduceRabenseifner},
		{name: "linear", run: reduceLinear, strict: true},
	},
	CollAllreduce: {
		{name: "doubling", run: allreduceDoubling},
		{name: "rabenseifner", run: allreduceRabenseifner},
		{name: "ring", run: allreduceRing, can: commutes},
		{name: "reduce-bcast", run: allreduceReduceBcast},
		{name: "linear", run: allreduceLinear, strict: true},
		{name: "ordered", run: allreduceOrdered, strict: true},
	},
	CollGather: {
		{name: "binomial", run: gatherBinomial},
		{name: "linear", run: gatherLinear},
	},
	CollGatherv: {{name: "linear", run: gatherLinear}},
	CollScatter: {
		{name: "binomial", run: scatterBinomial},
		{name: "linear", run: scatterLinear},
	},
	CollScatterv: {{name: "linear", run: scatterLinear}},
	CollAllgather: {
		{name: "bruck", run: allgatherBruck},
		{name: "doubling", run: allgatherDoubling, can: powerOfTwo},
		{name: "ring", run: allgatherRing},
		{name: "neighbor", run: allgatherNeighbor, can: even},
		{name: "linear", run: allgatherLinear},
	},
	CollAllgatherv: {
		{name: "ring", run: allgatherRing},
		{name: "linear", run: allgatherLinear},
	},
	CollAlltoall: {
		{name: "bruck", run: alltoallBruck},
		{name: "pairwise", run: alltoallPairwise},
		{name: "linear", run: alltoallLinear},
	},
	CollAlltoallv: {
		{name: "pairwise", run: alltoallPairwise},
		{name: "linear", run: alltoallLinear},
	},
	CollReduceScatter: {
		{name: "ordered", run: reduceScatterOrdered, strict: true},
		{name: "pairwise", run: reduceScatterPairwise, can: commutes},
		{name: "halving", run: reduceScatterHalving, can: commutes},
	},
	CollReduceScatterBlock: {
		{name: "ordered", run: reduceScatterOrdered, strict: true},
		{name: "pairwise", run: reduceScatterPairwise, can: commutes},
		{name: "halving", run: reduceScatterHalving, can: commutes},
	},
	CollScan: {
		{name: "linear", run: scanLinear, strict: true},
		{name: "doubling", run: scanDoubling},
	},
	CollExscan: {
		{name: "linear", run: scanLinear, strict: true},
		{name: "doubling", run: scanDoubling},
	},
}

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
			panic(err) // the table above names what does not exist
		}
	}
	return t
})
