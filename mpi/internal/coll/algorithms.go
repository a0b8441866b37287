package coll

// An Algorithm is one way to perform a collective operation.
type Algorithm struct {
	Name string
	Run  func(s *Schedule) error

	// can reports whether the algorithm can serve the schedule; nil: any. Its answer is the same
	// on all ranks.
	can func(s *Schedule) bool
	// strict is true if operands are combined strictly from left to right; other reductions may
	// group them.
	strict bool
}

// Serves reports whether a can run s, and if strict is true, whether it combines operands strictly
// from left to right.
func (a *Algorithm) Serves(s *Schedule, strict bool) bool {
	return (a.strict || !strict) && (a.can == nil || a.can(s))
}

// Conditions of algorithms.

func powerOfTwo(s *Schedule) bool { return s.Size&(s.Size-1) == 0 }
func commutes(s *Schedule) bool   { return s.Op.Commutative() }
func even(s *Schedule) bool       { return s.Size%2 == 0 }

// Algorithms returns the algorithms of a collective. The slice must not be changed.
func Algorithms(k Kind) []Algorithm {
	if k < Kinds {
		return algorithms[k]
	}
	return nil
}

var algorithms = [Kinds][]Algorithm{
	Barrier: {
		{Name: "dissemination", Run: barrierDissemination},
		{Name: "tree", Run: barrierTree},
		{Name: "sites", Run: barrierSites, can: severalSites},
	},
	Bcast: {
		{Name: "binomial", Run: bcastBinomial},
		{Name: "scatter-ring", Run: bcastScatterRing},
		{Name: "scatter-doubling", Run: bcastScatterDoubling, can: powerOfTwo},
		{Name: "chain", Run: bcastChain},
		{Name: "linear", Run: bcastLinear},
		{Name: "sites", Run: bcastSites, can: severalSites},
		{Name: "sites-split", Run: bcastSitesSplit, can: severalSites},
	},
	Reduce: {
		{Name: "binomial", Run: reduceBinomial},
		{Name: "rabenseifner", Run: reduceRabenseifner},
		{Name: "linear", Run: reduceLinear, strict: true},
		{Name: "sites", Run: reduceSites, can: orderedSites},
		{Name: "sites-split", Run: reduceSitesSplit, can: commutingSites},
	},
	Allreduce: {
		{Name: "doubling", Run: allreduceDoubling},
		{Name: "rabenseifner", Run: allreduceRabenseifner},
		{Name: "ring", Run: allreduceRing, can: commutes},
		{Name: "reduce-bcast", Run: allreduceReduceBcast},
		{Name: "linear", Run: allreduceLinear, strict: true},
		{Name: "ordered", Run: allreduceOrdered, strict: true},
		{Name: "sites", Run: allreduceSites, can: orderedSites},
		{Name: "sites-split", Run: allreduceSitesSplit, can: commutingSites},
	},
	Gather: {
		{Name: "binomial", Run: gatherBinomial},
		{Name: "linear", Run: gatherLinear},
		{Name: "sites", Run: gatherSites, can: severalSites},
	},
	Gatherv: {{Name: "linear", Run: gatherLinear}},
	Scatter: {
		{Name: "binomial", Run: scatterBinomial},
		{Name: "linear", Run: scatterLinear},
		{Name: "sites", Run: scatterSites, can: severalSites},
	},
	Scatterv: {{Name: "linear", Run: scatterLinear}},
	Allgather: {
		{Name: "bruck", Run: allgatherBruck},
		{Name: "doubling", Run: allgatherDoubling, can: powerOfTwo},
		{Name: "ring", Run: allgatherRing},
		{Name: "neighbor", Run: allgatherNeighbor, can: even},
		{Name: "linear", Run: allgatherLinear},
		{Name: "sites", Run: allgatherSites, can: severalSites},
		{Name: "sites-split", Run: allgatherSitesSplit, can: severalSites},
	},
	Allgatherv: {
		{Name: "ring", Run: allgatherRing},
		{Name: "linear", Run: allgatherLinear},
		{Name: "sites-split", Run: allgatherSitesSplit, can: severalSites},
	},
	Alltoall: {
		{Name: "bruck", Run: alltoallBruck},
		{Name: "pairwise", Run: AlltoallPairwise},
		{Name: "linear", Run: alltoallLinear},
		{Name: "sites", Run: alltoallSites, can: severalSites},
		{Name: "sites-direct", Run: alltoallSitesDirect, can: severalSites},
	},
	Alltoallv: {
		{Name: "pairwise", Run: AlltoallPairwise},
		{Name: "linear", Run: alltoallLinear},
		{Name: "sites-direct", Run: alltoallSitesDirect, can: severalSites},
	},
	ReduceScatter: {
		{Name: "ordered", Run: reduceScatterOrdered, strict: true},
		{Name: "pairwise", Run: reduceScatterPairwise, can: commutes},
		{Name: "halving", Run: reduceScatterHalving, can: commutes},
		{Name: "sites", Run: reduceScatterSites, can: commutingSites},
	},
	ReduceScatterBlock: {
		{Name: "ordered", Run: reduceScatterOrdered, strict: true},
		{Name: "pairwise", Run: reduceScatterPairwise, can: commutes},
		{Name: "halving", Run: reduceScatterHalving, can: commutes},
		{Name: "sites", Run: reduceScatterSites, can: commutingSites},
	},
	Scan: {
		{Name: "linear", Run: scanLinear, strict: true},
		{Name: "doubling", Run: scanDoubling},
		{Name: "sites", Run: scanSites, can: runsOfSites},
	},
	Exscan: {
		{Name: "linear", Run: exscanLinear, strict: true},
		{Name: "doubling", Run: exscanDoubling},
		{Name: "sites", Run: exscanSites, can: runsOfSites},
	},
}
