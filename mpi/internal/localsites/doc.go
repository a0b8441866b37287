// Package localsites runs the gateways of several sites in this process, on loopback sockets or on connections that the
// caller provides, so that the ranks of mpi.RunLocal can play several sites.
package localsites
