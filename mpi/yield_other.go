//go:build !linux

package mpi

func yieldProcessor() {}
