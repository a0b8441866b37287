//go:build !linux && !darwin && !windows

package udpio

func setDontFragment(uintptr, bool) {}
