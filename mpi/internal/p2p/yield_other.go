//go:build !linux

package p2p

func yieldProcessor() {}
