package cli

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ arg, help, misused string }{
		{"-n=3", "", ""},
		{"-h", "usage: command\n", ""},
		{"-x", "", "command: flag provided but not defined: -x\n`command -h` explains how it is used.\n"},
	} {
		var help, misused strings.Builder
		fs := flag.NewFlagSet("command", flag.ContinueOnError)
		fs.Int("n", 0, "")
		fs.Usage = func() { fmt.Fprintln(fs.Output(), "usage: command") }
		err := Parse(fs, []string{tt.arg}, &help)
		if err != nil && !errors.Is(err, flag.ErrHelp) {
			Misused(&misused, fs.Name(), err)
		}
		if (err == nil) != (tt.arg == "-n=3") || help.String() != tt.help || misused.String() != tt.misused {
			t.Errorf("%s: %v, %q, %q", tt.arg, err, help.String(), misused.String())
		}
	}
}

func TestGiven(t *testing.T) {
	fs := flag.NewFlagSet("command", flag.ContinueOnError)
	fs.Int("n", 0, "")
	fs.Int("m", 0, "")
	if err := fs.Parse([]string{"-n=0"}); err != nil {
		t.Fatal(err)
	}
	if !Given(fs, "n") || Given(fs, "m") || !Given(fs, "m", "n") || Given(fs) {
		t.Errorf("n: %v, m: %v, either: %v, none: %v", Given(fs, "n"), Given(fs, "m"), Given(fs, "m", "n"), Given(fs))
	}
}
