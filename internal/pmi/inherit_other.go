//go:build !unix

package pmi

import "errors"

// checkInherited refuses all: descriptors are not inherited by number here.
func checkInherited(int) error {
	return errors.New("descriptors are not inherited by number on this system")
}
