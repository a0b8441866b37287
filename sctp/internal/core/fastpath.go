package core

// The fast paths of the association, as TCP's header prediction is one: a packet or a call
// that is the expected one is handled at once, everything else takes the slow path, with the
// same outcome. Each has a file whose name begins with fastpath, and so have, in packages tx
// and reasm, the methods that only fast paths call:
//
//   - fastpath_bulk_send.go: packets of a batch that hold nothing but new data, and several
//     at once if each is filled by the middle of one message
//   - fastpath_bulk_receive.go: such packets of a GRO batch
//   - fastpath_small_send.go: a single message that fits one packet, past the send queue
//   - fastpath_small_receive.go: such a packet, copied to the buffer of the reader that waits
//   - fastpath_deferred_sack.go: a SACK of the only outstanding chunk, processed after the
//     data behind it
//   - fastpath_borrow.go: packets built from the caller's buffer while Send runs
//
// Scatter-gather I/O (iovec.go) and the bundling of SACKs (sack_bundling.go) are no paths of
// their own, but depend on the same word of reasons.

// slowReasons says why packets need the slow path: a bit for each cause that has nothing
// to do with the packet in hand. A fast path asks whether the word is zero, or has none of the
// bits that concern it, and then only compares the packet with the one that it expects.
//
// A feature that asks for the slow path adds its condition to [Assoc.findSlowReasons].
// Control chunks, timers and packets that nextPacket builds while the word is not zero
// have it found anew. What else can begin to need the slow path, user calls and what DATA
// and SACK chunks lead to, sets its bit at once; it may stay set a little too long, which
// costs speed only.
type slowReasons uint16

const (
	slowState     slowReasons = 1 << iota // the association is not ESTABLISHED
	slowConfig                            // Config.slowPath, for tests
	slowPaths                             // there is not exactly one path
	slowPathDown                          // the only path is not fit for data, or tries another local address
	slowAuth                              // chunks are authenticated
	slowShutdown                          // a shutdown was asked for or is going on
	slowCWR                               // a CWR chunk is to be sent
	slowECNE                              // SACKs are followed by an ECNE chunk
	slowAsconf                            // an ASCONF waits to be sent, or all addresses are being replaced
	slowPruned                            // a local address was removed: packets to it are dropped
	slowReconfig                          // a RE-CONFIG request waits or is outstanding
	slowReset                             // a request of the peer's waits for DATA, or holds it back
	slowReplies                           // control chunks or complete packets wait to be sent
	slowHeartbeat                         // a HEARTBEAT or a probe of path MTU discovery is to be sent
)

const (
	// slowToSend are the reasons that may add chunks to a packet or a packet of their own.
	slowToSend = slowState | slowShutdown | slowAsconf | slowReconfig | slowReplies | slowHeartbeat
	// slowBatch are those for which a packet behind the first of a batch may have more in
	// it than new data. The first one carries an ECNE chunk or the answers to RE-CONFIG.
	slowBatch = slowToSend | slowConfig | slowCWR
	// slowBulkReceive are those that concern packets with the next DATA chunk.
	slowBulkReceive = slowState | slowConfig | slowPruned
	// slowDeferSack are those for which something may wait for an acknowledgement.
	slowDeferSack = slowState | slowPaths | slowShutdown | slowReconfig | slowReset
	// slowBundleSack are those for which a SACK leaves with the next packet.
	slowBundleSack = slowState | slowPaths | slowAuth | slowCWR | slowECNE
)

// findSlowReasons looks at everything that the word of reasons sums up.
func (a *Assoc) findSlowReasons() (r slowReasons) {
	set := func(bit slowReasons, on bool) {
		if on {
			r |= bit
		}
	}
	set(slowState, a.state != Established)
	set(slowConfig, a.cfg.slowPath)
	set(slowAuth, a.auth.On)
	set(slowShutdown, a.shut.wanted || a.shut.sendReq || a.shut.sendAck)
	set(slowCWR, a.ecn.cwr)
	set(slowECNE, a.ecn.echo)
	set(slowAsconf, a.asc.Busy())
	set(slowPruned, a.local.Removed())
	set(slowReconfig, a.rc.Len() > 0)
	set(slowReset, a.rc.HoldsData())
	set(slowReplies, a.tx.carry.full || a.standalone.n > 0 || a.ctl.n > 0 || a.hs.sendAck)
	set(slowPaths, len(a.paths) != 1)
	for i := range a.paths {
		p := &a.paths[i]
		set(slowHeartbeat, p.hb.pending || p.plpmtu.Due())
		set(slowPathDown, len(a.paths) == 1 && (!p.usable() || p.Local != p.home))
	}
	return r
}

// recheckSlow finds the reasons anew if there are any.
func (a *Assoc) recheckSlow() {
	if a.slow != 0 {
		a.slow = a.findSlowReasons()
	}
}
