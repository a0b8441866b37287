// Package process has the procedures of C for sessions, spawned processes, and the connection of jobs by
// ports and sockets (MPI-5.0, Chapter 11).
package process
