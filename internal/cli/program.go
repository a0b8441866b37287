package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
)

// Exit statuses of the commands.
const (
	ExitOK    = 0
	ExitFail  = 1 // the command failed
	ExitUsage = 2 // the flags or arguments are wrong
)

// Command is a subcommand of a program.
type Command struct {
	Name  string
	Short string                  // one line for the list of commands
	Run   func(args []string) int // gets the arguments after the name, returns the exit status
}

// Program is a program that consists of subcommands. It adds the command help and
// the flags -h and -version.
type Program struct {
	Name     string
	Short    string    // one sentence for the top of the usage
	Commands []Command // in the order that the usage lists them
}

// Main runs the subcommand that args begin with and returns the exit status.
func (p *Program) Main(args []string) int {
	if len(args) == 0 {
		p.usage(os.Stderr)
		return ExitUsage
	}
	switch args[0] {
	case "-h", "-help", "--help":
		p.usage(os.Stdout)
		return ExitOK
	case "help":
		return p.help(args[1:])
	case "-version", "--version":
		args = []string{"version"}
	}
	if c := p.Lookup(args[0]); c != nil {
		return c.Run(args[1:])
	}
	return Refuse(p.Name, fmt.Errorf("unknown command %q", args[0]))
}

// Lookup returns the subcommand of that name, or nil.
func (p *Program) Lookup(name string) *Command {
	i := slices.IndexFunc(p.Commands, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Commands[i]
}

func (p *Program) usage(w io.Writer) {
	fmt.Fprintf(w, "%s\n\nUsage:\n\n\t%s COMMAND [arguments]\n\nCommands:\n\n", p.Short, p.Name)
	for _, c := range p.Commands {
		fmt.Fprintf(w, "\t%-11s %s\n", c.Name, c.Short)
	}
	fmt.Fprintf(w, "\t%-11s %s\n", "help", "print the usage of "+p.Name+" or of one command")
	fmt.Fprintf(w, "\nRun `%s help COMMAND` for the flags of a command.\n", p.Name)
}

// help prints the usage of the program, or of the command that args name.
func (p *Program) help(args []string) int {
	switch len(args) {
	case 0:
		p.usage(os.Stdout)
		return ExitOK
	case 1:
		if c := p.Lookup(args[0]); c != nil {
			return c.Run([]string{"-h"})
		}
	}
	return Refuse(p.Name, fmt.Errorf("no help for %q", args))
}

// Start parses args into fs, whose name is that of the command with its program.
// If it returns false, the command ends with the returned status: help was
// requested and printed, or the flags are wrong and the error was printed.
func Start(fs *flag.FlagSet, args []string) (status int, ok bool) {
	err := Parse(fs, args, os.Stdout)
	switch {
	case err == nil:
		return ExitOK, true
	case errors.Is(err, flag.ErrHelp):
		return ExitOK, false
	}
	return Refuse(fs.Name(), err), false
}

// Refuse prints what is wrong with the flags or arguments of a command to standard
// error and returns the exit status.
func Refuse(command string, err error) int {
	Misused(os.Stderr, command, err)
	return ExitUsage
}
