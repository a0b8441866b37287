// Bench measures the module that stands at the path github.com/pion/sctp: what it carries, what it allocates,
// and how long a small message takes there and back, over
//
//   - memory: queues of packets in memory;
//   - udp: connected UDP sockets of the loopback;
//   - dtls: DTLS on these (pion/dtls);
//   - webrtc: a detached data channel of pion/webrtc.
//
// Both ends are in one process, so the processor time and the allocations are those of both. By default it
// measures the module that it was built with:
//
//	go run . -conn udp -echo                        # weft's, by the replace lines of go.mod
//	go run -modfile=pion.mod . -conn udp -echo      # pion's
//
// With -rounds it builds itself both ways, runs the two by turns, and prints the medians:
//
//	go run . -conn udp,dtls,webrtc -rounds 11 -echo
//
// -loss loses packets at random each way, -delay delays them each way, below DTLS and ICE. With -raw, messages of
// 1,200 bytes go over the connection without SCTP: what DTLS or the sockets carry by themselves.
package main
