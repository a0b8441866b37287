package mpi

import (
	"context"
	"fmt"
)

// A Program is what RunLocal runs for a Command.
type Program func(ctx context.Context, w *World, args []string) error

// WithProgram gives ranks of RunLocal a program to Spawn under a name. The new
// ranks are goroutines, too; RunLocal waits for them, and returns their errors
// with those of the others. They use the same options.
func WithProgram(name string, p Program) Option {
	return func(o *options) error {
		if name == "" || p == nil {
			return fmt.Errorf("%w: program %q", ErrOption, name)
		}
		programs := map[string]Program{name: p}
		for k, v := range o.programs {
			if k != name {
				programs[k] = v
			}
		}
		o.programs = programs
		return nil
	}
}
