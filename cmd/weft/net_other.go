//go:build !linux

package main

import "errors"

// runNet needs network namespaces.
func runNet(*netOptions, [][]string) (int, error) {
	return exitFail, errors.New("emulated hosts are network namespaces, which only Linux has")
}
