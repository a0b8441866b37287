//go:build !linux

package main

import (
	"errors"
	"fmt"
)

// placesOf is bindPlaces for this machine.
func placesOf(kind string, n int) ([][]int, error) {
	if kind == "" || kind == "none" {
		return nil, nil
	}
	return nil, fmt.Errorf("-bind-to %s: %w on this system", kind, errors.ErrUnsupported)
}

// startOn calls start.
func startOn(_ []int, start func() error) error { return start() }
