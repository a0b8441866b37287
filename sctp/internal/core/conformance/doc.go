// Package conformance has no code, but a suite of scripts that hold the core
// against the sentences of the RFCs it implements: packets in, packets out, and
// a clock that moves only when a script says so. testdata has one file for a
// part of an RFC, and a script for every requirement:
//
//	== 9260/6.2-1
//	"After receiving the first DATA chunk, the endpoint MUST …"
//	setup established
//	> DATA BE tsn=P sid=0 ssn=0 len=8
//	< SACK cum=P
//
// The name is the RFC, the section, and a number; the sentence is the RFC's,
// with " … " where words are left out. Then come statements, one a line:
//
//	config k=v …     parameters of the end under test, before setup
//	peer k=v …       what the peer's INIT or INIT ACK says, before setup:
//	                 rwnd out in tsn ext=pr,idata,ecn,reconfig addrs=a,b
//	setup S          how far to go before the script begins: wait, echoed,
//	                 established (all by a client), server, listener, nobody,
//	                 pending, sent, received, acksent
//	> C; C …         a packet to the end under test; >+ does not end the batch
//	< C; C …         the next packet it sends, with exactly these chunks; a
//	                 final ";*" allows for more
//	+D               the time moves on by D, and timers run
//	drain            what was sent up to now does not matter
//	state S          the state
//	drop R           why the last packet was dropped
//	event E k=v      the next event of this kind
//	noevent E        there was none
//	recv k=v "text"  reads a message, or a part of it
//	norecv           there is nothing to read
//	path N k=v       values of a path
//	supports k=v     what both ends support: pr, idata
//	stat k=v         counters of the association
//	send … piece     a message in pieces, which ends with "send … last"
//	send, shutdown, abort, … what the user does; "fails TEXT" at the end of the
//	                 line says that it does not succeed
//
// Nothing may be sent that no "<" line mentions, at the time when it does.
//
// Chunks are written, and compared, as package wire describes them. A field
// that is left out of an expected chunk can be anything; k>=v, k<=v and k!=v
// compare in other ways, and k=?X gives the value a name. The numbers that both
// ends choose are L and LT, the initial TSN and the tag of the end under test,
// and P and PT, those of the peer. A packet begins with what is unusual about
// it in brackets:
//
//	> [tag=LT+1 from=10.0.0.9 at=10.0.0.1 ecn=3 damage] SACK cum=L rwnd=65536
//	< [tag=PT from=10.0.0.1 to=10.0.0.3] HEARTBEAT
//
// Some rules hold for every packet that any script makes the end under test send,
// such as where parameters may be, and are checked besides.
//
// Every script can fail, and its number is on the page of its RFC in docs/spec.
package conformance
