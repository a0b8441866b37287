// Package topology has the procedures of C for Cartesian, graph and distributed graph topologies (MPI-5.0,
// Chapter 8). Collectives on the neighbors of a topology are in package collective.
package topology
