package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/weftstack/weft/internal/cli"
)

// Exit statuses of the command itself; `weft run` otherwise returns the job's.
const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
)

// command is one subcommand. run gets the arguments after the name and returns
// the exit status.
type command struct {
	name, short string
	run         func(args []string) int
}

// commands lists the subcommands in the order that help shows them.
func commands() []command {
	return []command{
		{"run", "start the ranks of an MPI program here or on several hosts", runMain},
		{"net", "run programs on emulated hosts and networks", netMain},
		{"perf", "measure what a transport carries", perfMain},
		{"bench", "measure MPI as the OSU micro-benchmarks do", benchMain},
		{"rping", "ping by RDMA over TCP, as rping of librdmacm does", rpingMain},
		{"nameserver", "let several jobs publish ports for each other", nameserverMain},
		{"version", "print the version", versionMain},
		{"help", "explain weft or one of its commands", helpMain},
	}
}

func main() { os.Exit(dispatch(os.Args[1:])) }

// dispatch runs the subcommand that args name.
func dispatch(args []string) int {
	if len(args) == 0 {
		usage(os.Stderr)
		return exitUsage
	}
	switch args[0] {
	case "-h", "-help", "--help":
		usage(os.Stdout)
		return exitOK
	case "-version", "--version":
		return versionMain(nil)
	}
	if c, ok := lookup(args[0]); ok {
		return c.run(args[1:])
	}
	return misused("", fmt.Errorf("unknown command %q", args[0]))
}

func lookup(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

func usage(w io.Writer) {
	fmt.Fprint(w, "weft runs and examines programs over user-space SCTP, iWARP and MPI.\n\nUsage:\n\n\tweft COMMAND [arguments]\n\nCommands:\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "\t%-11s %s\n", c.name, c.short)
	}
	fmt.Fprint(w, "\n`weft help COMMAND` shows the flags of one.\n")
}

func helpMain(args []string) int {
	switch len(args) {
	case 0:
		usage(os.Stdout)
		return exitOK
	case 1:
		if c, ok := lookup(args[0]); ok && c.name != "help" {
			return c.run([]string{"-h"})
		}
	}
	return misused("", fmt.Errorf("no help on %q", args))
}

func versionMain(args []string) int {
	fs := flag.NewFlagSet("version", flag.ContinueOnError)
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: weft version\n\nVersion prints the version of weft, and of Go.\n")
	}
	if status, ok := parse(fs, args); !ok {
		return status
	}
	if fs.NArg() > 0 {
		return misused("version", errors.New("unexpected arguments"))
	}
	fmt.Printf("weft %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return exitOK
}

// version returns the module version that this binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// parse parses args into fs. When it reports false the command is over, with
// the given exit status: help was asked for, or the flags are wrong, which has
// been said.
func parse(fs *flag.FlagSet, args []string) (status int, ok bool) {
	err := cli.Parse(fs, args, os.Stdout)
	switch {
	case err == nil:
		return exitOK, true
	case errors.Is(err, flag.ErrHelp):
		return exitOK, false
	}
	return misused(fs.Name(), err), false
}

// misused says what is wrong with the flags and arguments of a command, or of weft
// itself, and what explains it. It returns the exit status.
func misused(command string, err error) int {
	cli.Misused(os.Stderr, strings.TrimSpace("weft "+command), err)
	return exitUsage
}
