package tool

import (
	"runtime"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// memory is what the runtime says of its heap. The lock of the tool guards it: on the stack it would be an allocation
// each time.
var memory runtime.MemStats

// memoryPvars count what the library allocates from its own heap: messages in steady state allocate nothing. Each read
// stops the library for some 20 µs, and then counts exactly.
func memoryPvars() []*pvar {
	return []*pvar{
		{"weft_allocations", "number of objects that the library has allocated", abi.TPvarClassCounter,
			func(*mpi.Stats) int {
				runtime.ReadMemStats(&memory)
				return int(memory.Mallocs)
			}},
		{"weft_allocations_bytes", "bytes of the objects that the library has allocated", abi.TPvarClassAggregate,
			func(*mpi.Stats) int {
				runtime.ReadMemStats(&memory)
				return int(memory.TotalAlloc)
			}},
	}
}
