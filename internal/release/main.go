// Command release cuts a release of weft: it tags the commit, builds the commands for
// every platform, and writes archives and their checksums. docs/releasing.md says how
// and when.
//
//	go run ./internal/release -dry-run v0.1.0   print what would be done
//	go run ./internal/release v0.1.0            do it
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/weftstack/weft/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout)) }

func run(args []string, out io.Writer) int {
	r := release{dir: ".", commands: []string{"weft", "farm"}, platforms: allPlatforms, out: out}
	dryRun := false
	fs := flag.NewFlagSet("release", flag.ContinueOnError)
	fs.BoolVar(&dryRun, "dry-run", false, "check everything and print the plan, but change nothing")
	fs.StringVar(&r.dist, "o", "dist", "`directory` to make for the archives")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: release [-dry-run] [-o DIR] VERSION\n\n"+
			"Release tags the current commit as VERSION (v1.2.3), builds the commands for all\n"+
			"platforms from the tag, and writes an archive for each and SHA256SUMS. It pushes nothing.\n\n")
		fs.PrintDefaults()
	}
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	if fs.NArg() != 1 {
		return cli.Refuse(fs.Name(), errors.New("give one version"))
	}
	r.version = fs.Arg(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := r.check(ctx)
	if err == nil {
		r.printPlan()
		if !dryRun {
			err = r.cut(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}
