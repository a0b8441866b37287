// Package installmpi is `weft install-mpi`: it builds the C library and installs it.
package installmpi

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/mpi/libmpi_abi/install"
)

// Main runs `weft install-mpi` with its arguments and returns the exit status.
func Main(args []string) int {
	fs := flag.NewFlagSet("weft install-mpi", flag.ContinueOnError)
	var o install.Options
	fs.StringVar(&o.Source, "source", "", "`directory` of weft's source (default: the module of the current directory, or what weft was built from)")
	asJSON := fs.Bool("json", false, "print what was installed as JSON")
	verbose := fs.Bool("v", false, "print what the Go tool prints")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft install-mpi [flags] PREFIX

Install-mpi builds the C library of weft, with the ABI of MPI-5.0, and installs it
below the directory PREFIX:

  lib/libmpi_abi.so.1     the library; programs compiled for the ABI of another MPI find it, too
  include/mpi.h           the header
  bin/mpicc, mpicxx, mpifort   compilers with the flags of MPI programs
  bin/mpiexec, mpirun     other names of weft run
  lib/pkgconfig/weft-mpi.pc
  share/weft/gdb.py       a script for gdb: which line of a program waits in MPI

It needs the Go tool, a C compiler (gcc, or $CC), and weft's source. Building takes
about a minute the first time.

`)
		fs.PrintDefaults()
	}
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	if fs.NArg() != 1 {
		return cli.Refuse(fs.Name(), errors.New("one directory is needed: where to install"))
	}
	o.Prefix = fs.Arg(0)
	if *verbose {
		o.Output = os.Stderr
	}
	o.Step = func(format string, args ...any) { fmt.Fprintf(os.Stderr, "weft install-mpi: "+format+"\n", args...) }
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "weft install-mpi:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

func run(ctx context.Context, o install.Options, asJSON bool) error {
	start := time.Now()
	var err error
	if o.Weft, err = os.Executable(); err != nil {
		return err
	}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "(devel)" {
		o.Version = b.Main.Version
	}
	done, err := install.Install(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			install.Installed
			Seconds float64 `json:"seconds"`
		}{done, time.Since(start).Seconds()})
	}
	bin := filepath.Join(done.Prefix, "bin")
	fmt.Printf("installed %s\n\ncompile with %s, run with %s -n 4 ./a.out\n", done.Library, filepath.Join(bin, "mpicc"), filepath.Join(bin, "mpiexec"))
	return nil
}
