// Package fuzz holds the fuzz targets of the parsers and state machines that
// read what a peer sent. It exports nothing; its test files are the targets:
//
//	go test ./fuzz                                   # the seeds only
//	go test ./fuzz -run '^$' -fuzz '^FuzzPacket$'    # one target
//
// A crash that a run finds becomes a file in testdata/fuzz/FuzzX, and is
// committed with its fix.
package fuzz
