// Command weft runs and examines programs over user-space SCTP, iWARP and MPI.
//
//	weft run -n 4 ./cmd/farm -input FILE   start four ranks of an MPI program
//	weft version                           print the version
//	weft help [COMMAND]                    explain a command
package main
