package job

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Report to the launcher of what a rank waits for when a job does not end: the calls of its
// goroutines, from their stacks, and the missing messages, from the queues of the engine. It costs
// nothing until it is requested.

const (
	// maxBlocked bounds the report of a rank, in bytes.
	maxBlocked = 600
	// maxStacks bounds the stacks that a rank writes, in bytes.
	maxStacks = 1 << 20
	// maxBlockedItems bounds the calls, and the messages, that a rank names.
	maxBlockedItems = 8
)

// blocked returns, in one line, what the rank waits for. It writes the stacks of all
// goroutines to a file, unless its name is empty.
func (j *Job) blocked(stacksTo string) string {
	buf := make([]byte, maxStacks)
	buf = buf[:runtime.Stack(buf, true)]
	calls := blockedCalls(buf, j.face.CallName)
	var b strings.Builder
	switch {
	case len(calls) > 0:
		b.WriteString("is in " + strings.Join(limitItems(calls), ", "))
	default:
		b.WriteString("is in no call of MPI")
	}
	if waits := j.missing(); len(waits) > 0 {
		b.WriteString("; waits for " + strings.Join(limitItems(waits), ", "))
	}
	if stacksTo != "" {
		if err := os.WriteFile(stacksTo, buf, 0o600); err != nil {
			fmt.Fprintf(&b, " (its stacks: %v)", err)
		}
	}
	s := b.String()
	if len(s) > maxBlocked {
		s = s[:maxBlocked] + "…"
	}
	return s
}

// limitItems replaces what is too much of a list by its number.
func limitItems(items []string) []string {
	if n := len(items) - maxBlockedItems; n > 0 {
		return append(items[:maxBlockedItems:maxBlockedItems], fmt.Sprintf("and %d more", n))
	}
	return items
}

// mpiPrefix begins the names of the functions of package mpi in a stack.
const mpiPrefix = "github.com/weftstack/weft/mpi."

// blockedCalls returns the calls of package mpi that goroutines are in, with the place
// in the program, from the text of their stacks. Equal ones are counted. callName names those of programs in
// C or Fortran: see Face.
func blockedCalls(stacks []byte, callName func(entry string) string) []string {
	count := make(map[string]int)
	for g := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if c := blockedCall(strings.Split(string(g), "\n"), callName); c != "" {
			count[c]++
		}
	}
	var out []string
	for c, n := range count {
		switch {
		case n > 1 && strings.HasPrefix(c, "MPI_"):
			c = fmt.Sprintf("%s (%d threads)", c, n)
		case n > 1:
			c = fmt.Sprintf("%s (%d goroutines)", c, n)
		}
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}

// blockedCall returns the call of one goroutine, or "": of a program in C or Fortran its name in MPI.
// A stack is a line about the goroutine, then two lines for each function, innermost first: its name
// and its place.
func blockedCall(lines []string, callName func(entry string) string) string {
	call := ""
	for i := 1; i+1 < len(lines); i += 2 {
		if name, _, ok := strings.Cut(lines[i], "("); ok {
			if call = callName(name); call != "" {
				return call
			}
		}
	}
	for i := 1; i+1 < len(lines); i += 2 {
		name, mine := strings.CutPrefix(lines[i], mpiPrefix)
		if mine {
			call = exportedCall(name)
			continue
		}
		if call != "" {
			place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
			return fmt.Sprintf("%s at %s", call, filepath.Base(place))
		}
	}
	return ""
}

// exportedCall returns Recv or Comm.Barrier for a function in a stack, or "" if it is
// not exported.
func exportedCall(name string) string {
	name, method := strings.CutPrefix(name, "(*")
	name, _, _ = strings.Cut(name, "[")
	if method {
		var rest string
		name, rest, _ = strings.Cut(strings.ReplaceAll(name, "[...]", ""), ").")
		name += "." + rest
	}
	name, _, _ = strings.Cut(name, "(")
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || part[0] < 'A' || part[0] > 'Z' {
			return ""
		}
	}
	return name
}

// missing lists the messages that receives and probes wait for, and the sends that peers have not taken.
func (j *Job) missing() []string {
	count := make(map[string]int)
	all := j.Engine.Expected()
	slices.SortFunc(all, func(a, b p2p.Expected) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Slot, b.Slot),
			cmp.Compare(j.commOf(a.Owner), j.commOf(b.Owner)),
			cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Room, b.Room))
	})
	var lines []string
	for _, v := range all {
		line := describe(v, j.commOf(v.Owner), j.operationOf(v.Owner))
		if count[line]++; count[line] == 1 {
			lines = append(lines, line)
		}
	}
	for i, line := range lines {
		if n := count[line]; n > 1 {
			lines[i] = fmt.Sprintf("%s (%d times)", line, n)
		}
	}
	return lines
}

// commOf names a communicator.
func (j *Job) commOf(owner any) string {
	if owner == nil {
		return ""
	}
	return j.face.CommName(owner)
}

// operationOf says what the only operation on a communicator waits for, see Face.
func (j *Job) operationOf(owner any) string {
	if owner == nil || j.face.Operation == nil {
		return ""
	}
	return j.face.Operation(owner)
}

// describe says what v waits for in the communicator comm, whose name may be empty.
func describe(v p2p.Expected, comm, operation string) string {
	peer := fmt.Sprintf("rank %d", v.Peer)
	if v.Peer == p2p.AnySource {
		peer = "any rank"
	}
	tag := fmt.Sprintf(" with tag %d", v.Tag)
	if v.Tag == p2p.AnyTag {
		tag = " with any tag"
	}
	what, room := "a message", ""
	switch v.Slot {
	case p2p.SlotColl, p2p.SlotComm:
		what, tag = "a collective's message", ""
	case p2p.SlotWin:
		what, tag = "a one-sided message", ""
	}
	if v.Kind == p2p.ExpectedMessage && v.Slot == p2p.SlotUser {
		room = fmt.Sprintf(" (at most %d bytes)", v.Room)
	}
	if comm != "" {
		comm = " in " + comm
	}
	switch {
	case operation != "":
		return operation + comm
	case v.Kind == p2p.ExpectedBody:
		return "the rest of " + what + " from " + peer + tag + comm
	case v.Kind == p2p.ExpectedReceive && v.Slot == p2p.SlotUser:
		return "a matching receive of " + peer + tag + comm
	case v.Kind == p2p.ExpectedReceive:
		return peer + " to take " + what + comm
	}
	return what + " from " + peer + tag + comm + room
}
