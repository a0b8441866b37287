package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
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

// A value that a flag does not take is refused with what it wants.
func TestWantedValues(t *testing.T) {
	for arg, want := range map[string]string{
		"-wait=2":   `invalid value "2" for flag -wait: want a time with its unit, such as 300ms, 2s or 5m`,
		"-n=many":   `invalid value "many" for flag -n: want a whole number`,
		"-u=-1":     `invalid value "-1" for flag -u: want a whole number that is not negative`,
		"-max-f=x":  `invalid value "x" for flag -max-f: want a number`,
		"-b=maybe":  `invalid boolean value "maybe" for -b: want true or false`,
		"-n=1e9":    `invalid value "1e9" for flag -n: want a whole number`,
		"-unknown":  `flag provided but not defined: -unknown`,
		"-own=this": `invalid value "this" for flag -own: not that`,
	} {
		fs := flag.NewFlagSet("command", flag.ContinueOnError)
		fs.Duration("wait", 0, "")
		fs.Int("n", 0, "")
		fs.Uint("u", 0, "")
		fs.Float64("max-f", 0, "")
		fs.Bool("b", false, "")
		fs.Func("own", "", func(string) error { return errors.New("not that") })
		if err := Parse(fs, []string{arg}, io.Discard); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", arg, err, want)
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
