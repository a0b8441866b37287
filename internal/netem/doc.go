// Package netem models networks that join hosts through a switch: rate, queue,
// delay, jitter, loss, duplication, reordering, corruption and MTU, per network
// and host, changeable while packets are under way.
//
// The model does no I/O and has no clock. Its owner injects packets, advances
// the time, and gets back the packets that are due. What happens to the n-th
// packet from one host to another depends on the seed and n alone, so a run can
// be repeated as far as the programs above it repeat themselves.
//
// Split and Joiner are what a network card with offload does between a host and
// the network: they cut GSO packets into packets and merge packets.
package netem
