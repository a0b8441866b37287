package cli

import (
	"flag"
	"io"
	"slices"
	"testing"
)

func TestProgramDispatch(t *testing.T) {
	var got []string
	p := &Program{Name: "prog", Commands: []Command{
		{Name: "run", Run: func(args []string) int { got = args; return 7 }},
		{Name: "version", Run: func(args []string) int { got = []string{"version"}; return ExitOK }},
	}}
	for _, tt := range []struct {
		args   []string
		status int
		got    []string
	}{
		{nil, ExitUsage, nil},
		{[]string{"dance"}, ExitUsage, nil},
		{[]string{"run", "-n", "2"}, 7, []string{"-n", "2"}},
		{[]string{"help", "run"}, 7, []string{"-h"}},
		{[]string{"help", "help"}, ExitUsage, nil},
		{[]string{"-h"}, ExitOK, nil},
		{[]string{"-version"}, ExitOK, []string{"version"}},
	} {
		got = nil
		if status := p.Main(tt.args); status != tt.status || !slices.Equal(got, tt.got) {
			t.Errorf("%q: status %d and arguments %q, want %d and %q", tt.args, status, got, tt.status, tt.got)
		}
	}
}

func TestStart(t *testing.T) {
	for _, tt := range []struct {
		arg    string
		status int
		ok     bool
	}{{"-n=3", ExitOK, true}, {"-h", ExitOK, false}, {"-x", ExitUsage, false}} {
		fs := flag.NewFlagSet("prog run", flag.ContinueOnError)
		fs.Int("n", 0, "")
		fs.Usage = func() { io.WriteString(fs.Output(), "usage\n") }
		if status, ok := Start(fs, []string{tt.arg}); status != tt.status || ok != tt.ok {
			t.Errorf("%s: status %d, %t; want %d, %t", tt.arg, status, ok, tt.status, tt.ok)
		}
	}
}
