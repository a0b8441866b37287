// Command weft runs and examines programs over user-space SCTP, iWARP and MPI.
//
//	weft run -n 4 ./cmd/farm -input FILE   start four ranks of an MPI program
//	weft gateway -sites FILE -site NAME    relay messages of jobs between sites
//	weft version [-json]                   print the version, Go version and revision
//	weft help [COMMAND]                    explain a command
package main
