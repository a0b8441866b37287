package tool

import (
	"slices"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A pvar is a performance variable: a counter of the process, which each handle counts from its own
// beginning, or a level. All are MPI_UNSIGNED_LONG_LONG and are bound to no object.
type pvar struct {
	name, desc string
	class      int
	read       func(*mpi.Stats) int
}

// counts reports whether the variable counts: it can be started, stopped and reset.
func (v *pvar) counts() bool {
	return v.class == abi.TPvarClassCounter || v.class == abi.TPvarClassAggregate
}

var pvars = append(slices.Concat(trafficPvars(), handlePvars(), memoryPvars()), []*pvar{
	{"weft_posted_receives", "receives that wait for a message", abi.TPvarClassLevel,
		func(s *mpi.Stats) int { return s.Posted }},
	{"weft_unexpected_messages", "messages that wait for a receive", abi.TPvarClassLevel,
		func(s *mpi.Stats) int { return s.Unexpected }},
	{"weft_unexpected_bytes", "memory of messages that wait for a receive, in bytes with a surcharge for each",
		abi.TPvarClassLevel, func(s *mpi.Stats) int {
			return sumPeers(s, func(p *mpi.PeerStats) int { return int(p.Held) })
		}},
	{"weft_announced_sends", "sends that wait for their receive at another rank", abi.TPvarClassLevel,
		func(s *mpi.Stats) int { return sumPeers(s, func(p *mpi.PeerStats) int { return p.Announced }) }},
	{"weft_spin_cost", "about how long a wait takes that begins with polling, in nanoseconds", abi.TPvarClassLevel,
		func(s *mpi.Stats) int { return int(s.SpinCost) }},
	{"weft_park_cost", "about how long a wait takes that begins with sleeping, in nanoseconds", abi.TPvarClassLevel,
		func(s *mpi.Stats) int { return int(s.ParkCost) }},
}...)

// trafficPvars are the counters of messages and bytes.
func trafficPvars() []*pvar {
	var all []*pvar
	for _, k := range []struct {
		name, what string
		of         func(*mpi.PeerStats) mpi.Traffic
	}{
		{"messages", "point-to-point messages of the program", func(p *mpi.PeerStats) mpi.Traffic { return p.Messages }},
		{"collective", "messages of collective operations", func(p *mpi.PeerStats) mpi.Traffic { return p.Collective }},
		{"one_sided", "messages of windows and files", func(p *mpi.PeerStats) mpi.Traffic { return p.OneSided }},
		{"internal", "messages to make communicators, and of barriers of the library",
			func(p *mpi.PeerStats) mpi.Traffic { return p.Internal }},
		{"writes", "writes to memory of other ranks", func(p *mpi.PeerStats) mpi.Traffic { return p.Writes }},
		{"reads", "reads of memory of other ranks", func(p *mpi.PeerStats) mpi.Traffic { return p.Reads }},
		{"atomics", "atomic operations on memory of other ranks", func(p *mpi.PeerStats) mpi.Traffic { return p.Atomics }},
		{"relayed", "messages to other sites", func(p *mpi.PeerStats) mpi.Traffic { return p.Relayed }},
	} {
		all = append(all, &pvar{"weft_" + k.name, "number of " + k.what, abi.TPvarClassCounter,
			func(s *mpi.Stats) int {
				return sumPeers(s, func(p *mpi.PeerStats) int { return int(k.of(p).Messages) })
			}}, &pvar{"weft_" + k.name + "_bytes", "bytes of " + k.what, abi.TPvarClassAggregate,
			func(s *mpi.Stats) int {
				return sumPeers(s, func(p *mpi.PeerStats) int { return int(k.of(p).Bytes) })
			}})
	}
	return all
}

// handlePvars are the numbers of handles that the program has not freed, of each kind.
func handlePvars() []*pvar {
	var all []*pvar
	for _, name := range cbinding.KindNames() {
		all = append(all, &pvar{"weft_" + name + "_handles", "objects of kind " + name +
			" that the program has made and not freed", abi.TPvarClassLevel,
			func(*mpi.Stats) int { return cbinding.CountHandles(name) }})
	}
	return all
}

// sumPeers returns the sum over all other processes and the rank itself.
func sumPeers(s *mpi.Stats, of func(*mpi.PeerStats) int) int {
	n := of(&s.Others)
	for i := range s.Peers {
		n += of(&s.Peers[i])
	}
	return n
}

// toolStats returns the counters: 0 before MPI_Init, and as MPI_Finalize found them after it.
func toolStats() mpi.Stats {
	if w := cbinding.TheWorld(); w != nil {
		return w.Stats()
	}
	return tool.last
}

func init() {
	cbinding.AtFinalize(func() {
		tool.Lock()
		defer tool.Unlock()
		tool.last = cbinding.TheWorld().Stats()
	})
}

// A pvarSession is an MPI_T_pvar_session.
type pvarSession struct{ handles map[abi.Handle]*pvarHandle }

// A pvarHandle is an MPI_T_pvar_handle.
type pvarHandle struct {
	*pvar
	session abi.Handle
	value   uint64 // of a counter: what was counted until base
	base    uint64 // the variable when the counter was started or reset
	running bool
}

// now returns the variable.
func (h *pvarHandle) now() uint64 {
	s := toolStats()
	return uint64(h.pvar.read(&s))
}

// current returns the value of the handle.
func (h *pvarHandle) current(now uint64) uint64 {
	switch {
	case !h.counts():
		return now
	case h.running:
		return h.value + now - h.base
	}
	return h.value
}

// set gives a counter a value.
func (h *pvarHandle) set(value, now uint64) { h.value, h.base = value, now }

// pvarAt returns the variable of an index; nil if there is none.
func pvarAt(i int) *pvar {
	if i < 0 || i >= len(pvars) {
		return nil
	}
	return pvars[i]
}

// TPvarGetNum is MPI_T_pvar_get_num.
func TPvarGetNum(numPvar uintptr) int { return toolCount(numPvar, len(pvars)) }

// TPvarGetIndex is MPI_T_pvar_get_index.
func TPvarGetIndex(name uintptr, varClass int, pvarIndex uintptr) int {
	return indexOf(name, pvarIndex, len(pvars), func(i int) (string, bool) {
		return pvars[i].name, pvars[i].class == varClass
	})
}

// TPvarGetInfo is MPI_T_pvar_get_info.
func TPvarGetInfo(
	pvarIndex int, name, nameLen, verbosity, varClass, datatype, enumtype, desc, descLen, bind, readonly, continuous,
	atomic uintptr,
) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	v := pvarAt(pvarIndex)
	if v == nil {
		return abi.TErrInvalidIndex
	}
	counts := 0
	if v.counts() {
		counts = 1
	}
	setToolStr(name, nameLen, v.name)
	setToolStr(desc, descLen, v.desc)
	setToolInt(verbosity, abi.TVerbosityUserDetail)
	setToolInt(varClass, v.class)
	setToolHandle(datatype, abi.UnsignedLongLong)
	setToolEnum(enumtype, nil)
	setToolInt(bind, abi.TBindNoObject)
	setToolInt(readonly, 1-counts)
	setToolInt(continuous, 1-counts)
	setToolInt(atomic, counts)
	return 0
}
