package tool

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/bridge"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A cvar is a control variable: an environment variable that MPI_Init reads, or the table of algorithms
// of a communicator.
type cvar struct {
	name, desc string
	verbosity  int
	scope      int
	datatype   abi.Handle // MPI_CHAR: text; MPI_UNSIGNED_LONG_LONG: a size in bytes or a number; MPI_INT: of enum
	enum       *toolEnum
	initial    string // what MPI_Init takes if the environment variable is not set
}

// textCount is the length of variables that are texts, with the 0 at their end.
const textCount = 1024

// tuningCount is that of tables of algorithms.
const tuningCount = 1 << 16

var cvars = []*cvar{
	{"WEFT_TRANSPORT", "what carries messages between ranks", abi.TVerbosityUserBasic, abi.TScopeAllEq,
		abi.Int, transportEnum, mpi.TransportHybrid},
	{"WEFT_EAGER", "longest message that is sent without asking the receiver, in bytes", abi.TVerbosityTunerBasic,
		abi.TScopeLocal, abi.UnsignedLongLong, nil, strconv.Itoa(mpi.DefaultEager)},
	{"WEFT_RENDEZVOUS", "how longer messages travel", abi.TVerbosityTunerDetail, abi.TScopeLocal,
		abi.Int, rendezvousEnum, "message"},
	{"WEFT_STREAMS", "streams of an association that the tags of messages are spread over", abi.TVerbosityTunerDetail,
		abi.TScopeAllEq, abi.UnsignedLongLong, nil, strconv.Itoa(mpi.DefaultStreams)},
	{"WEFT_UNEXPECTED", "memory for messages that come before their receives, in bytes", abi.TVerbosityTunerBasic,
		abi.TScopeLocal, abi.UnsignedLongLong, nil, strconv.Itoa(mpi.DefaultUnexpected)},
	{"WEFT_SPIN", "how long a waiting thread polls, with nothing coming, before it sleeps: a number with a unit, as 5ms; " +
		"empty: chosen by the number of ranks and processors", abi.TVerbosityTunerBasic, abi.TScopeLocal, abi.Char, nil, ""},
	{"WEFT_SHARED", "whether ranks of one host exchange messages through memory", abi.TVerbosityTunerBasic,
		abi.TScopeAllEq, abi.Int, switchEnum, "1"},
	{"WEFT_SITE", "site of this process; empty: not known", abi.TVerbosityUserDetail, abi.TScopeLocal, abi.Char, nil, ""},
	{"WEFT_ADDRS", "local addresses, with commas between them; empty: all of the host", abi.TVerbosityUserDetail,
		abi.TScopeLocal, abi.Char, nil, ""},
	{"WEFT_CAPTURE", "file that sent datagrams are recorded in; empty: none", abi.TVerbosityUserDetail, abi.TScopeLocal,
		abi.Char, nil, ""},
	{mpi.TuningEnv, "rules for the algorithms of collectives, added to the default table", abi.TVerbosityTunerDetail,
		abi.TScopeAllEq, abi.Char, nil, ""},
	{tuningCvar, "table of the algorithms of collectives of a communicator", abi.TVerbosityTunerAll, abi.TScopeGroupEq,
		abi.Char, nil, ""},
}

// tuningCvar is the variable of a communicator.
const tuningCvar = mpi.InfoTuning

// A cvarHandle is an MPI_T_cvar_handle.
type cvarHandle struct {
	*cvar
	comm *cbinding.Communicator // of tuningCvar
}

// perComm reports whether the variable is one of communicators.
func (v *cvar) perComm() bool { return v.name == tuningCvar }

func (v *cvar) bind() int {
	if v.perComm() {
		return abi.TBindMpiComm
	}
	return abi.TBindNoObject
}

// count returns how many elements the variable has.
func (v *cvar) count() int {
	switch {
	case v.perComm():
		return tuningCount
	case v.datatype == abi.Char:
		return textCount
	}
	return 1
}

// value returns the variable as text: the option in effect after MPI_Init.
func (h *cvarHandle) value() string {
	if h.comm != nil {
		return h.comm.Tuning().String()
	}
	if w := cbinding.TheWorld(); w != nil {
		for _, t := range w.Tunables() {
			if t.Name == h.name {
				return t.Value
			}
		}
	}
	if s := os.Getenv(h.name); s != "" {
		return s
	}
	return h.initial
}

// cvarAt returns the variable of an index; nil if there is none.
func cvarAt(i int) *cvar {
	if i < 0 || i >= len(cvars) {
		return nil
	}
	return cvars[i]
}

// TCvarGetNum is MPI_T_cvar_get_num.
func TCvarGetNum(numCvar uintptr) int { return toolCount(numCvar, len(cvars)) }

// TCvarGetIndex is MPI_T_cvar_get_index.
func TCvarGetIndex(name, cvarIndex uintptr) int {
	return indexOf(name, cvarIndex, len(cvars), func(i int) (string, bool) { return cvars[i].name, true })
}

// TCvarGetInfo is MPI_T_cvar_get_info.
func TCvarGetInfo(
	cvarIndex int, name, nameLen, verbosity, datatype, enumtype, desc, descLen, bind, scope uintptr,
) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	v := cvarAt(cvarIndex)
	if v == nil {
		return abi.TErrInvalidIndex
	}
	setToolStr(name, nameLen, v.name)
	setToolStr(desc, descLen, v.desc)
	setToolInt(verbosity, v.verbosity)
	setToolInt(bind, v.bind())
	setToolInt(scope, v.scope)
	setToolHandle(datatype, v.datatype)
	setToolEnum(enumtype, v.enum)
	return 0
}

// setToolEnum stores the handle of an enumeration, or of none, at p unless that is null.
func setToolEnum(p uintptr, e *toolEnum) {
	h := abi.Handle(abi.TEnumNull)
	if e != nil {
		h = e.handle
	}
	setToolHandle(p, h)
}

// TCvarHandleAlloc is MPI_T_cvar_handle_alloc.
func TCvarHandleAlloc(cvarIndex int, object, handle, count uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	v := cvarAt(cvarIndex)
	if v == nil {
		return abi.TErrInvalidIndex
	}
	if handle == 0 || count == 0 {
		return abi.TErrInvalid
	}
	x := &cvarHandle{cvar: v}
	if v.perComm() {
		if object == 0 {
			return abi.TErrInvalid
		}
		c, err := cbinding.CommOf(*cbinding.At[abi.Handle](object))
		if err != nil {
			return cbinding.CodeOf(err)
		}
		x.comm = c
	}
	h, err := cvarHandles.Put(x)
	if err != nil {
		return abi.TErrOutOfHandles
	}
	cbinding.SetHandle(handle, h)
	cbinding.StoreInt(count, v.count(), false)
	return 0
}

// TCvarHandleFree is MPI_T_cvar_handle_free.
func TCvarHandleFree(handle uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if handle == 0 {
		return abi.TErrInvalid
	}
	if !cvarHandles.Delete(*cbinding.At[abi.Handle](handle)) {
		return abi.TErrInvalidHandle
	}
	cbinding.SetHandle(handle, abi.TCvarHandleNull)
	return 0
}

// TCvarRead is MPI_T_cvar_read.
func TCvarRead(handle abi.Handle, buf uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	h := cvarHandles.Get(handle)
	if h == nil {
		return abi.TErrInvalidHandle
	}
	if buf == 0 {
		return abi.TErrInvalid
	}
	s := h.value()
	switch h.datatype {
	case abi.Char:
		_ = cbinding.SetStr(buf, 0, s, h.count()) // buf is not null
	case abi.Int:
		*cbinding.At[int32](buf) = int32(max(slices.Index(h.enum.items, h.enumName(s)), 0))
	default:
		n, err := bridge.ParseSize(s)
		if err != nil { // of the environment, before MPI_Init, which will refuse it
			return abi.TErrNotAccessible
		}
		*cbinding.At[uint64](buf) = uint64(n)
	}
	return 0
}

// enumName returns the name of the value s of a variable that has an enumeration.
func (v *cvar) enumName(s string) string {
	if v.enum == switchEnum {
		if s == "1" {
			return "on"
		}
		return "off"
	}
	return s
}

// TCvarWrite is MPI_T_cvar_write. Environment variables can be set before MPI_Init only.
func TCvarWrite(handle abi.Handle, buf uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	h := cvarHandles.Get(handle)
	if h == nil {
		return abi.TErrInvalidHandle
	}
	if buf == 0 {
		return abi.TErrInvalid
	}
	if h.comm == nil {
		switch {
		case cbinding.State.Phase.Load() != cbinding.BeforeInit:
			return abi.TErrCvarSetNever
		case cbinding.State.Live.Load() > 0:
			return abi.TErrCvarSetNotNow
		}
	}
	s, code := h.written(buf)
	if code != 0 {
		return code
	}
	if h.comm != nil {
		return h.writeTuning(s)
	}
	if bridge.CheckOption(h.name, s) != nil || os.Setenv(h.name, s) != nil {
		return abi.TErrInvalid
	}
	return 0
}

// writeTuning gives the communicator a table. It holds the built-in rules in any case: that which was
// read, with more rules behind it, does not get them twice.
func (h *cvarHandle) writeTuning(s string) int {
	builtin, err := mpi.ParseTuning("")
	if err != nil {
		return abi.TErrInvalid
	}
	t, err := mpi.ParseTuning(strings.TrimPrefix(s, builtin.String()))
	if err != nil {
		return abi.TErrInvalid
	}
	h.comm.SetTuning(t)
	return 0
}

// written returns the value at buf as text.
func (h *cvarHandle) written(buf uintptr) (string, int) {
	switch h.datatype {
	case abi.Char:
		s, err := cbinding.Str("buf", buf, h.count())
		if err != nil {
			return "", abi.TErrInvalid
		}
		return s, 0
	case abi.Int:
		i := int(*cbinding.At[int32](buf))
		if i < 0 || i >= len(h.enum.items) {
			return "", abi.TErrInvalid
		}
		if h.enum == switchEnum {
			return strconv.Itoa(i), 0
		}
		return h.enum.items[i], 0
	}
	return strconv.FormatUint(*cbinding.At[uint64](buf), 10), 0
}
