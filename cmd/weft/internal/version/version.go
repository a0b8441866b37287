// Package version is `weft version`: what the running binary was built from.
package version

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/weftstack/weft/internal/cli"
)

// Info describes a binary, as -json prints it.
type Info struct {
	Version  string `json:"version"`            // of the module: a tag, a pseudo-version, or (devel)
	Revision string `json:"revision,omitempty"` // commit; empty if the build did not know it
	Time     string `json:"time,omitempty"`     // of the commit, RFC 3339
	Modified bool   `json:"modified"`           // the work tree differed from the commit
	Go       string `json:"go"`                 // version of Go
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// Main runs `weft version` with its arguments and returns the exit status.
func Main(args []string) int {
	fs := flag.NewFlagSet("weft version", flag.ContinueOnError)
	asJSON := fs.Bool("json", false, "print it as JSON, with the time of the commit")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: weft version [-json]\n\n"+
			"Version prints the version of the module, the Go version, the platform and the\nrevision that this binary was built from.\n\n")
		fs.PrintDefaults()
	}
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	if fs.NArg() > 0 {
		return cli.Refuse(fs.Name(), errors.New("unexpected arguments"))
	}
	info := fromBuild(debug.ReadBuildInfo())
	if err := info.print(os.Stdout, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "weft version:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

// fromBuild collects the information; ok tells whether b was embedded in the binary.
func fromBuild(b *debug.BuildInfo, ok bool) Info {
	info := Info{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if !ok {
		return info
	}
	info.Version = cmp.Or(b.Main.Version, info.Version)
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Revision = s.Value
		case "vcs.time":
			info.Time = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	return info
}

func (i *Info) print(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(i)
	}
	revision := cmp.Or(i.Revision, "unknown")
	if i.Modified {
		revision += " (modified)"
	}
	_, err := fmt.Fprintf(w, "weft %s %s %s/%s revision %s\n", i.Version, i.Go, i.OS, i.Arch, revision)
	return err
}
