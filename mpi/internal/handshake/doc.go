// Package handshake proves to both ends of a new connection that the other one belongs to the job: a challenge-response
// exchange, in which each end shows that it knows a key without sending it. A process without the key that finds the
// port cannot join:
//
//	connector                                acceptor
//	  hello    version, setup, ranks, nonce    →
//	           ←   nonce, HMAC(key, "accept" + all of the above)    answer
//	  prove    HMAC(key, "connect" + all of the above)    →
//	           ←                                                    welcome
//
// The acceptor sends and receives messages of the job once it has checked prove. The connector may receive once it has
// checked answer, and send once it has received welcome.
//
// Between ranks of one job Params.Setup is 0. Processes of two jobs that make an intercommunicator send the id of their
// link setup, which has a key of its own, and their numbers in it instead of ranks.
//
// An [Exchange] does no I/O: it turns messages into replies. [Run] runs it on a connection of bytes, and [Server]
// bounds what connections may take before the exchange is complete.
package handshake
