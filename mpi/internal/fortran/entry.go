package fortran

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// entry is an entry point of Fortran, a function of C, while it is written.
type entry struct {
	form
	list    []standard.Param
	params  []string // of the entry point
	lengths []string // hidden lengths of strings, behind the parameters
	locals  []string
	before  []string // statements before the call
	args    []string // of the call
	success []string // statements after a call that succeeded
	after   []string // statements after any call
	checks  []string // what must be MPI_SUCCESS for the call to be made
}

// C returns the entry point and its weak name, and for a procedure that is the same
// in mpi_f08 also its name there.
func (f form) C() string {
	e := &entry{form: f, list: f.params()}
	for i, q := range e.list {
		e.param(i, q)
	}
	var b strings.Builder
	name := f.symbol()
	result := "void"
	switch {
	case f.Result == "WALL_TIME", f.Result == "TICK_RESOLUTION":
		result = "double"
	case f.Result != "ERROR_CODE":
		result, _ = f.kind(standard.Param{Kind: f.Result})
	}
	params := append(e.params, e.lengths...)
	if len(params) == 0 {
		params = []string{"void"}
	}
	fmt.Fprintf(&b, "%s pmpi_%s_(%s) {\n", result, name, strings.Join(params, ", "))
	call := fmt.Sprintf("P%s(%s)", f.c(), strings.Join(e.args, ", "))
	if result != "void" {
		fmt.Fprintf(&b, "    return %s;\n}\n", call)
	} else {
		e.body(&b, call)
	}
	fmt.Fprintf(&b, "WEAK(%s)\n", name)
	if !f.large && !f.choice && !hasChoice(f.Procedure) && !f.Has("not_f08_expressible") {
		fmt.Fprintf(&b, "SAME(%s_f08, %s)\n", name, name)
	}
	return b.String() + "\n"
}

func (e *entry) body(b *strings.Builder, call string) {
	for _, s := range slices.Concat(e.locals, e.before) {
		fmt.Fprintf(b, "    %s;\n", s)
	}
	if len(e.checks) > 0 {
		b.WriteString("    int e = MPI_SUCCESS;\n")
		for _, c := range e.checks {
			fmt.Fprintf(b, "    if (e == MPI_SUCCESS)\n        e = %s;\n", c)
		}
		fmt.Fprintf(b, "    e = e == MPI_SUCCESS ? %s : %s;\n", call, e.raise())
	} else {
		fmt.Fprintf(b, "    int e = %s;\n", call)
	}
	if len(e.success) > 0 {
		b.WriteString("    if (e == MPI_SUCCESS) {\n")
		for _, s := range e.success {
			fmt.Fprintf(b, "        %s;\n", s)
		}
		b.WriteString("    }\n")
	}
	for _, s := range e.after {
		fmt.Fprintf(b, "    %s;\n", s)
	}
	b.WriteString("    if (ierror != NULL)\n        *ierror = e;\n}\n")
}

// raise returns the call of the error handler of the object, for an error that is
// found before the call of C.
func (e *entry) raise() string {
	for _, q := range e.list {
		switch {
		case q.Direction != "in" || q.Array != "":
		case q.Kind == "COMMUNICATOR":
			return fmt.Sprintf("weft_raise_comm(TO_C(MPI_Comm, *%s), e, %q)", q.Name, e.Name)
		case q.Kind == "WINDOW":
			return fmt.Sprintf("weft_raise_win(TO_C(MPI_Win, *%s), e, %q)", q.Name, e.Name)
		case q.Kind == "FILE":
			return fmt.Sprintf("weft_raise_file(TO_C(MPI_File, *%s), e, %q)", q.Name, e.Name)
		}
	}
	return fmt.Sprintf("weft_raise_comm(MPI_COMM_SELF, e, %q)", e.Name)
}

// pass passes an argument that Fortran and C have alike.
func (e *entry) pass(ctype, name string) {
	e.params = append(e.params, ctype+" *"+name)
	e.args = append(e.args, name)
}

func (e *entry) param(i int, q standard.Param) {
	if q.Name == ierror || q.Name == "ierr" {
		e.params = append(e.params, "int *ierror")
		return
	}
	ctype, class := e.kind(q)
	switch class {
	case standard.Integer:
		e.integer(i, q, ctype)
	case standard.Handle:
		e.handle(i, q, ctype)
	case standard.Status:
		e.params = append(e.params, "void *"+q.Name)
		e.args = append(e.args, "weft_status("+q.Name+")")
	case standard.Address:
		e.address(i, q)
	case standard.String:
		e.text(q)
	case standard.Function:
		e.params = append(e.params, "void *"+q.Name)
		if e.large && q.Kind == "POLYFUNCTION" {
			q.Func += "_c"
		}
		e.args = append(e.args, fmt.Sprintf("(%s *)%s", q.Func, q.Name))
	default:
		panic(fmt.Sprintf("fortran: %s: parameter %s of kind %s has no rule", e.Name, q.Name, q.Kind))
	}
}

func (e *entry) integer(i int, q standard.Param, ctype string) {
	requests := slices.ContainsFunc(e.list, func(r standard.Param) bool { return r.Kind == "REQUEST" && r.Array != "" })
	switch {
	case q.Kind == "WEIGHT":
		e.params = append(e.params, "int *"+q.Name)
		e.args = append(e.args, "weft_weights("+q.Name+")")
	case q.Kind == "RANK" && q.Array == "n,3":
		e.params = append(e.params, "int "+q.Name+"[][3]")
		e.args = append(e.args, q.Name)
	case requests && q.Kind == "INDEX" && q.Array == "":
		e.params = append(e.params, "int *"+q.Name)
		e.locals = append(e.locals, "int c_"+q.Name+" = MPI_UNDEFINED")
		e.args = append(e.args, "&c_"+q.Name)
		e.after = append(e.after, fmt.Sprintf("*%s = c_%[1]s >= 0 ? c_%[1]s + 1 : c_%[1]s", q.Name))
	case requests && q.Kind == "INDEX":
		e.pass(ctype, q.Name)
		e.after = append(e.after, fmt.Sprintf("weft_count_from_one(%s, *outcount)", q.Name))
	case requests && q.Name == "outcount":
		e.before = append(e.before, "*outcount = MPI_UNDEFINED")
		e.pass(ctype, q.Name)
	case q.Array != "" || q.Direction != "in":
		e.pass(ctype, q.Name)
	case e.owner(i) >= 0:
		e.params = append(e.params, ctype+" *"+q.Name)
		e.args = append(e.args, fmt.Sprintf("s_%s.count", e.list[e.owner(i)].Name))
	default:
		e.params = append(e.params, ctype+" *"+q.Name)
		e.args = append(e.args, "*"+q.Name)
	}
}

func (e *entry) handle(i int, q standard.Param, ctype string) {
	e.params = append(e.params, "int *"+q.Name)
	switch {
	case q.Array != "":
		e.handles(i, q, ctype)
	case q.Direction == "in" && !q.Pointer && e.owner(i) < 0:
		e.args = append(e.args, fmt.Sprintf("TO_C(%s, *%s)", ctype, q.Name))
	case q.Direction == "in" && !q.Pointer:
		// The datatype of a choice buffer, which may be one of a section.
		e.args = append(e.args, fmt.Sprintf("s_%s.datatype", e.list[e.owner(i)].Name))
	default:
		e.locals = append(e.locals, fmt.Sprintf("%s c_%s = TO_C(%s, *%s)", ctype, q.Name, ctype, q.Name))
		e.args = append(e.args, "&c_"+q.Name)
		// Also after an error, where C may have stored a null handle.
		if q.Direction != "in" {
			e.after = append(e.after, fmt.Sprintf("*%s = TO_FORTRAN(c_%s)", q.Name, q.Name))
		}
	}
}

// owner returns the choice buffer whose section parameter i describes, -1 if none.
func (e *entry) owner(i int) int {
	if !e.choice {
		return -1
	}
	for j, q := range e.list {
		if q.Kind != "BUFFER" {
			continue
		}
		if count, datatype, ok := e.own(e.list, j); ok && (i == count || i == datatype) {
			return j
		}
	}
	return -1
}

// handles passes an array of handles, which have another size in C.
func (e *entry) handles(i int, q standard.Param, ctype string) {
	length := "*" + q.Array
	neighbors := strings.Contains(e.Name, "eighbor")
	switch {
	case q.Array != "*":
	case neighbors && q.Name == "sendtypes":
		length = "weft_destinations(TO_C(MPI_Comm, *comm))"
	case neighbors:
		length = "weft_sources(TO_C(MPI_Comm, *comm))"
	default:
		length = "weft_peers(TO_C(MPI_Comm, *comm))"
	}
	from := q.Name
	if q.Name == "sendtypes" { // not significant in place, and then often no array
		from = "weft_in_place(sendbuf) ? NULL : sendtypes"
		if e.choice {
			from = "weft_in_place(sendbuf->base_addr) ? NULL : sendtypes"
		}
	}
	e.locals = append(e.locals, "struct weft_handles c_"+q.Name)
	e.before = append(e.before, fmt.Sprintf("weft_handles(&c_%s, %s, %s)", q.Name, from, length))
	e.args = append(e.args, fmt.Sprintf("(%s *)c_%s.at", ctype, q.Name))
	if q.Direction != "in" {
		e.after = append(e.after, fmt.Sprintf("weft_handles_back(&c_%s, %s)", q.Name, q.Name))
	}
	e.after = append(e.after, fmt.Sprintf("weft_handles_free(&c_%s)", q.Name))
}

func (e *entry) address(i int, q standard.Param) {
	if q.Kind != "BUFFER" || !e.choice {
		e.params = append(e.params, "void *"+q.Name)
		if q.Kind == "BUFFER" {
			e.args = append(e.args, "weft_buffer("+q.Name+")")
		} else {
			e.args = append(e.args, q.Name)
		}
		if q.Kind == "C_BUFFER2" {
			e.success = append(e.success, "weft_detached("+q.Name+")")
		}
		return
	}
	e.params = append(e.params, "CFI_cdesc_t *"+q.Name)
	use := "0"
	if !q.Asynchronous && !slices.ContainsFunc(e.list, func(r standard.Param) bool { return r.Kind == "REQUEST" }) {
		use = "WEFT_COPY"
		if q.Direction != "in" {
			use = "WEFT_COPY | WEFT_BACK"
		}
	}
	count, datatype, own := e.own(e.list, i)
	s := "s_" + q.Name
	switch {
	case own:
		e.checks = append(e.checks, fmt.Sprintf("weft_section(&%s, %s, *%s, *%s, %s)", s, q.Name, e.list[count].Name,
			e.list[datatype].Name, use))
	case use != "0":
		e.checks = append(e.checks, fmt.Sprintf("weft_packed(&%s, %s, %s)", s, q.Name, use))
	default:
		e.locals = append(e.locals, "void *c_"+q.Name+" = weft_buffer("+q.Name+"->base_addr)")
		if !strings.HasSuffix(e.Name, "_end") && e.Name != "MPI_Get_address" { // they take only the address
			e.checks = append(e.checks, fmt.Sprintf("weft_contiguous(%s)", q.Name))
		}
		e.args = append(e.args, "c_"+q.Name)
		return
	}
	e.locals = append(e.locals, "struct weft_section "+s+" = {0}")
	e.args = append(e.args, s+".buffer")
	e.after = append(e.after, fmt.Sprintf("weft_section_free(&%s)", s))
}

// text passes a string.
func (e *entry) text(q standard.Param) {
	c := "c_" + q.Name
	if e.choice { // the procedure is one of C, which has descriptors for strings too
		e.params = append(e.params, "CFI_cdesc_t *"+q.Name)
		e.before = append(e.before, fmt.Sprintf("char *%s = weft_string(%s->base_addr, %[2]s->elem_len)", c, q.Name))
		e.args = append(e.args, c)
		e.after = append(e.after, "free("+c+")")
		return
	}
	length := q.Name + "_len"
	e.params = append(e.params, "char *"+q.Name)
	e.lengths = append(e.lengths, "size_t "+length)
	e.args = append(e.args, c)
	if q.Direction == "in" {
		make := "weft_string"
		if strings.HasPrefix(e.Name, "MPI_Info_") {
			make = "weft_word"
		}
		e.before = append(e.before, fmt.Sprintf("char *%s = %s(%s, %s)", c, make, q.Name, length))
		e.after = append(e.after, "free("+c+")")
		return
	}
	room := q.Array
	switch {
	case q.Name == "key":
		room = "MPI_MAX_INFO_KEY"
	case q.Name == "datarep":
		room = "MPI_MAX_DATAREP_STRING"
	}
	if !strings.HasPrefix(room, "MPI_MAX_") {
		panic(fmt.Sprintf("fortran: %s: string %s has no known length", e.Name, q.Name))
	}
	e.locals = append(e.locals, fmt.Sprintf("char %s[%s + 1] = {0}", c, room))
	e.success = append(e.success, fmt.Sprintf("weft_pad(%s, %s, %s)", q.Name, length, c))
}
