//go:build !linux

package mpi

// processors returns where this process may run, which is not known here.
func processors() cpuSet { return nil }
