// Package pmi speaks version 1 of the process management interface (PMI-1),
// the protocol by which a launcher tells each process of a parallel job its
// rank, and through which the processes exchange their addresses.
//
// A [Client] is what a rank uses; it talks to `weft run`, to MPICH's Hydra and
// to every other launcher of that protocol. A [Server] is what `weft run` gives
// its ranks, one connection each. Messages are lines of key=value pairs
// separated by spaces.
//
// PMI-1 limits keys and values to short strings without spaces. [Client.Put]
// takes any bytes: it encodes them and splits them over several keys where the
// launcher's limit asks for it, and [Client.Get] joins them again.
package pmi
