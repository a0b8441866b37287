//go:build !linux

package main

import (
	"github.com/weftstack/weft/internal/cli"
)

import "errors"

// runNet needs network namespaces.
func runNet(*netOptions, [][]string) (int, error) {
	return cli.ExitFail, errors.New("emulated hosts are network namespaces, which only Linux has")
}
