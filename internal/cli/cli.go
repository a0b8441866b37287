// Package cli holds what commands share: subcommands, exit statuses, and the text that a
// command prints on -h and on wrong use.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Parse is fs.Parse, but prints only what was asked for: on flag.ErrHelp the usage,
// to help.
func Parse(fs *flag.FlagSet, args []string, help io.Writer) error {
	fs.SetOutput(io.Discard)
	usage := fs.Usage
	fs.Usage = func() {}
	err := fs.Parse(args)
	fs.Usage = usage
	if errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(help)
		usage()
		return err
	}
	return explain(fs, err)
}

// explain adds to the error of a value that a flag does not take what it wants: the
// flag package says "parse error".
func explain(fs *flag.FlagSet, err error) error {
	if err == nil {
		return nil
	}
	text, _, ok := strings.Cut(err.Error(), ": parse error")
	if !ok {
		return err
	}
	// Of a boolean flag the package says "for -name", of others "for flag -name".
	f := fs.Lookup(text[strings.LastIndex(text, " -")+len(" -"):])
	if f == nil {
		return err
	}
	g, ok := f.Value.(flag.Getter)
	if !ok {
		return err
	}
	var want string
	switch g.Get().(type) {
	case time.Duration:
		want = "a time with its unit, such as 300ms, 2s or 5m"
	case int, int64:
		want = "a whole number"
	case uint, uint64:
		want = "a whole number that is not negative"
	case float64:
		want = "a number"
	case bool:
		want = "true or false"
	default:
		return err
	}
	return fmt.Errorf("%s: want %s", text, want)
}

// Given reports whether one of these flags was set, even to what it is by default.
func Given(fs *flag.FlagSet, names ...string) (given bool) {
	fs.Visit(func(f *flag.Flag) { given = given || slices.Contains(names, f.Name) })
	return given
}

// Misused says to w what is wrong with the flags and arguments of a command, and
// what explains it.
func Misused(w io.Writer, command string, err error) {
	fmt.Fprintf(w, "%s: %v\n`%[1]s -h` explains how it is used.\n", command, err)
}
