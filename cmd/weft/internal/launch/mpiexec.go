package launch

import (
	"flag"
	"fmt"
	"strings"
)

// alias is an option that mpiexec has in the standard (MPI-4.1, Section 11.5), in Open MPI or in
// MPICH, and that weft run understands as options of its own, or refuses.
type alias struct {
	names  []string // without dashes; each may be given with one dash or two
	values int      // arguments that belong to it: -genv NAME VALUE has two
	to     func(v []string) ([]string, error)
	says   string // what it does here, for the documentation; of a refused one: what to do instead
}

// aliases are all of them, in the order of the documentation.
var aliases = []alias{
	{[]string{"np", "c"}, 1, one("n"), "`-n`"},
	{[]string{"host", "H"}, 1, one("hosts"), "`-hosts`"},
	{[]string{"machinefile", "f"}, 1, one("hostfile"), "`-hostfile`"},
	{[]string{"prepend-rank", "tag-output"}, 0, become("-l"), "`-l`"},
	{[]string{"genv"}, 2, variable("x"), "`-x NAME=VALUE`"},
	{[]string{"genvlist", "envlist"}, 1, variables, "`-x NAME` for each NAME of the list"},
	{[]string{"envall"}, 0, become("-genvall"), "`-genvall`"},
	{[]string{"npernode", "perhost", "N"}, 1, one("ppn"), "`-ppn`"},
	{[]string{"pernode"}, 0, become("-ppn", "1"), "`-ppn 1`"},
	{[]string{"byslot"}, 0, become("-map-by", "slot"), "`-map-by slot`"},
	{[]string{"bynode", "rr"}, 0, become("-map-by", "node"), "`-map-by node`"},
	{[]string{"bind-to-core"}, 0, become("-bind-to", "core"), "`-bind-to core`"},
	{[]string{"bind-to-none"}, 0, become("-bind-to", "none"), "`-bind-to none`"},
	{[]string{"wd"}, 1, one("wdir"), "`-wdir`"},
	{[]string{"verbose", "print-all-exitcodes", "exitinfo"}, 0, become("-v"), "`-v`"},
	{[]string{"V", "info"}, 0, become("-version"), "`-version`"},
	{[]string{"enable-recovery", "disable-auto-cleanup"}, 0, become("-ft"), "`-ft`"},
	{[]string{"launcher-exec"}, 1, one("rsh"), "`-rsh`"},
	{[]string{"allow-run-as-root"}, 0, become(), "nothing: that is always allowed"},
	{[]string{"q", "quiet"}, 0, become(), "nothing: without `-v` only errors are printed"},
	{[]string{"get-stack-traces", "report-state-on-timeout"}, 0, become(), "nothing: `-timeout` says what each rank waits for"},

	{[]string{"mca", "gmca", "pmixmca", "prtemca"}, 2, nil, "the parameters of weft are the variables WEFT_…: -x WEFT_TRANSPORT=tcp"},
	{[]string{"soft"}, 1, nil, "a job has exactly the ranks of -n"},
	{[]string{"arch"}, 1, nil, "name the hosts with -hosts"},
	{[]string{"file"}, 1, nil, "write the programs on the command line, with colons, or in a file for -configfile"},
	{[]string{"genvnone", "envnone"}, 0, nil, "ranks on this host have the environment of the command; clear it with env -i"},
	{[]string{"rank-by"}, 1, nil, "ranks are numbered as -map-by places them"},
	{[]string{"rankfile", "rf"}, 1, nil, "list the hosts in the order of the ranks with -hosts"},
	{[]string{"npersocket", "cpus-per-proc", "cpus-per-rank"}, 1, nil, "use -bind-to core, or start each rank by a script that calls taskset"},
	{[]string{"prefix"}, 1, nil, "on every host weft must be installed under the same path; -x PATH and -x LD_LIBRARY_PATH pass other paths on"},
	{[]string{"iface"}, 1, nil, "name the addresses with -x WEFT_ADDRS=ADDRESS"},
	{[]string{"display-map", "display-allocation", "print-rank-map", "report-bindings"}, 0, nil, "use -dry-run to print where ranks would run, -v for their process ids"},
	{[]string{"output-filename", "outfile-pattern", "errfile-pattern"}, 1, nil, "use -l, or redirect the output in a script that starts the program"},
	{[]string{"stdin", "s"}, 1, nil, "rank 0 reads the standard input of the command: < FILE, or < /dev/null for none"},
	{[]string{"output", "prepend-pattern"}, 1, nil, "use -l, which puts the rank before each line"},
	{[]string{"timestamp-output", "xml"}, 0, nil, "use -l and a command that adds what you need to each line"},
	{[]string{"merge-stderr-to-stdout"}, 0, nil, "use 2>&1"},
	{[]string{"nolocal"}, 0, nil, "leave this host out of -hosts"},
	{[]string{"use-hwthread-cpus"}, 0, nil, "use -bind-to hwthread, or none"},
	{[]string{"cpu-set", "membind"}, 1, nil, "use -bind-to core, or start the program by taskset or numactl"},
	{[]string{"app"}, 1, nil, "use -configfile"},
	{[]string{"xterm"}, 1, nil, "start a terminal for each rank: -n 2 xterm -e ./prog"},
	{[]string{"preload-binary", "preload-files"}, 0, nil, "copy the program to the hosts first"},
	{[]string{"gdb", "debug", "tv"}, 0, nil, "see -timeout and SIGQUIT, or start a debugger for each rank: -n 2 xterm -e gdb ./prog"},
	{[]string{"launcher", "bootstrap"}, 1, nil, "use -rsh COMMAND"},
}

// one makes an option another one with the same value.
func one(name string) func([]string) ([]string, error) {
	return func(v []string) ([]string, error) { return []string{"-" + name, v[0]}, nil }
}

// become makes an option without a value others.
func become(args ...string) func([]string) ([]string, error) {
	return func([]string) ([]string, error) { return args, nil }
}

// variable makes NAME VALUE one argument of an option.
func variable(name string) func([]string) ([]string, error) {
	return func(v []string) ([]string, error) { return []string{"-" + name, strings.Join(v, "=")}, nil }
}

// variables makes a list of names one option for each.
func variables(v []string) (args []string, err error) {
	for name := range strings.SplitSeq(v[0], ",") {
		args = append(args, "-x", name)
	}
	return args, nil
}

// findAlias returns the alias of that name, or nil.
func findAlias(name string) *alias {
	for i := range aliases {
		for _, n := range aliases[i].names {
			if n == name {
				return &aliases[i]
			}
		}
	}
	return nil
}

// translate replaces the options in front of a program that other launchers have by those of fs.
// What it does not know it leaves for fs to refuse.
func translate(fs *flag.FlagSet, args []string) (out []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		if arg == "-" || arg == "--" || !strings.HasPrefix(arg, "-") {
			break
		}
		name, value, given := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		if name == "env" && !given {
			if args, err = joinVariable(args); err != nil {
				return nil, err
			}
		}
		a := findAlias(name)
		if a == nil {
			n := min(1+arity(fs, name, given), len(args))
			out, args = append(out, args[:n]...), args[n:]
			continue
		}
		if a.to == nil {
			return nil, fmt.Errorf("-%s of other launchers has no equivalent here: %s", name, a.says)
		}
		var v []string
		args = args[1:]
		if given {
			v = append(v, value)
		}
		for len(v) < a.values && len(args) > 0 {
			if a.values == 2 && len(v) == 1 && strings.Contains(v[0], "=") {
				break // -genv NAME=VALUE
			}
			v, args = append(v, args[0]), args[1:]
		}
		if len(v) > a.values || len(v) < min(a.values, 1) || len(v) == 1 && a.values == 2 && !strings.Contains(v[0], "=") {
			return nil, fmt.Errorf("-%s takes %d arguments", name, a.values)
		}
		more, err := a.to(v)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return append(out, args...), nil
}

// joinVariable makes -env NAME VALUE, as MPICH has it, -env NAME=VALUE.
func joinVariable(args []string) ([]string, error) {
	if len(args) > 1 && strings.Contains(args[1], "=") {
		return args, nil
	}
	if len(args) < 3 {
		return nil, fmt.Errorf("-env takes NAME VALUE or NAME=VALUE; -x NAME passes on the current value")
	}
	return append([]string{args[0], args[1] + "=" + args[2]}, args[3:]...), nil
}

// arity returns how many arguments behind it belong to an option of fs.
func arity(fs *flag.FlagSet, name string, given bool) int {
	f := fs.Lookup(name)
	if f == nil || given {
		return 0
	}
	if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
		return 0
	}
	return 1
}

// aliasUsage lists the aliases for -h.
func aliasUsage() string {
	var known, refused []string
	for _, a := range aliases {
		names := "-" + strings.Join(a.names, ", -")
		if a.to == nil {
			refused = append(refused, names)
			continue
		}
		known = append(known, fmt.Sprintf("  %-36s %s", names, strings.ReplaceAll(a.says, "`", "")))
	}
	return "Options of other launchers, with one dash or two:\n\n" + strings.Join(known, "\n") +
		"\n\nRefused, with a hint: " + wrap(strings.Join(refused, ", "), 76) + "\n"
}

// wrap breaks a text into lines of a width, in bytes.
func wrap(text string, width int) string {
	var b strings.Builder
	at := len("Refused, with a hint: ")
	for i, w := range strings.Fields(text) {
		switch {
		case i > 0 && at+1+len(w) > width:
			b.WriteString("\n")
			at = 0
		case i > 0:
			b.WriteString(" ")
			at++
		}
		b.WriteString(w)
		at += len(w)
	}
	return b.String()
}
