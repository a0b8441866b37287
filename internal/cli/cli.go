// Package cli has commands answer alike when they are asked for help, or are
// used wrongly, and tells which flags they were given.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
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
	}
	return err
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
