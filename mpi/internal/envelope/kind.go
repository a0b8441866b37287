package envelope

// A Kind is the kind of a message. The values are those on the wire.
type Kind uint8

// The kinds of messages.
const (
	Eager      Kind = iota + 1 // an eager message, with its body
	Sync                       // as Eager; the sender waits for a SyncAck with ID
	RTS                        // request to send Length bytes (rendezvous); ID names the send
	CTS                        // clear to send Length bytes of send ID to receive PeerID
	Data                       // the body of a rendezvous, for receive ID
	SyncAck                    // a receive has matched the Sync message of send ID
	SendFailed                 // the send that receive ID has matched has failed: there will be no body
	Credit                     // Length more bytes of eager messages may be sent
	Disconnect                 // the sender has finalized
	Handshake                  // the first message of a link
	Cancel                     // request to drop the message of send ID if no receive has matched it
	Canceled                   // the message of send ID is dropped: the answer to Cancel, or see FlagFreed
	CTSKey                     // as CTS; the body may also be written to the memory that Key names
	WriteFIN                   // from the receiver: the body written to the Key of receive ID has been placed
	RTSKey                     // as RTS; the body may also be read from the memory that Key names
	ReadFIN                    // the receiver has read the body of send ID, or does not need it any more
	Doorbell                   // wakes the receiver to poll shared memory
	Kinds                      // the first number without a meaning
)

// Flags of a Header.
const (
	// FlagSeq says that Seq is valid: the message is part of the order that wildcard receives obey.
	FlagSeq = 1
	// FlagFailed, in SendFailed, says that the sender knows of ranks that have failed.
	FlagFailed = 2
	// FlagWrite, in RTS, says that the sender prefers to write the body to the memory of the
	// receiver (CTSKey).
	FlagWrite = 4
	// FlagAgain, in Data, says that the body is sent again, so the receive may have it already.
	FlagAgain = 8
	// FlagCMA, in RTSKey, says that the body may be copied from the memory of the sender by
	// cross-memory attach. Then STag is the slot of the offer, and Token holds its state word and
	// the address.
	FlagCMA = 16
	// FlagFreed, in Canceled, says that the receiver has freed the communicator and dropped the
	// message unasked.
	FlagFreed = 32
)

// Lengths of headers in bytes.
const (
	MinLen = 32 // the shortest
	idLen  = 40 // of Sync and RTS
	MaxLen = idLen + keyLen
)

// HeaderLen returns the length of the header of a message of kind k.
func (k Kind) HeaderLen() int {
	switch k {
	case Sync, RTS:
		return idLen
	case CTSKey:
		return MinLen + keyLen
	case RTSKey:
		return MaxLen
	}
	return MinLen
}

// HasBody reports whether Length bytes follow the header.
func (k Kind) HasBody() bool {
	return k == Eager || k == Sync || k == Data || k == Handshake
}

// Matched reports whether messages of kind k are matched with receives.
func (k Kind) Matched() bool { return k >= Eager && k <= RTS || k == RTSKey }
