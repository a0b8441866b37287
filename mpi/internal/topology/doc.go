// Package topology has the arithmetic of virtual topologies: grids, the division of ranks over their
// dimensions, and the placement of ranks so that few edges connect different hosts. It neither
// communicates nor knows communicators.
package topology
