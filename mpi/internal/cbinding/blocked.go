package cbinding

import (
	"strings"

	"github.com/weftstack/weft/mpi/internal/bridge"
	"github.com/weftstack/weft/mpi/internal/standard"
)

func init() { bridge.CallName = callName }

// callName returns the name in MPI of a call of C: MPI_Type_commit for main.weft_TypeCommit, the
// exported function of the library in the stack of a goroutine, or for a closure that is compiled into
// it. For any other name it returns "".
func callName(entry string) string {
	name, ok := strings.CutPrefix(entry, "main.weft_")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, ".") // of a closure in it
	for _, p := range standard.Procedures() {
		if standard.GoName(p.Name) == name {
			return p.Name
		}
	}
	return "MPI_" + name // not a procedure of the tables: MPIX_…
}
