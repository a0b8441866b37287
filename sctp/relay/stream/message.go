package stream

import "encoding/binary"

// version is that of the protocol, in the messages open and accept.
const version = 1

// kind is the type of a message.
type kind uint8

const (
	kindOpen kind = 1 + iota
	kindAccept
	kindRefuse
	kindData
	kindEnd
	// On the control flow only; kindDone and kindReset are notices.
	kindDone
	kindReset
)

// kindPing, on the control flow, says nothing. It shares its number with kindOpen, which is on other flows.
const kindPing = kindOpen

const (
	// MaxRequest is the length in bytes of the longest request.
	MaxRequest = 1024
	// maxText is the length of the longest text of a refusal.
	maxText = 512
	// maxMessage is the length of the longest message other than data.
	maxMessage = MaxRequest + 1

	// A generation has 29 bits, so that it fits the PPID behind the type.
	generationBits = 29
	generationMask = 1<<generationBits - 1
)

// ppidOf returns the payload protocol identifier for a message of a connection.
func ppidOf(k kind, generation uint32) uint32 {
	return uint32(k)<<generationBits | generation&generationMask
}

func splitPPID(ppid uint32) (k kind, generation uint32) {
	return kind(ppid >> generationBits), ppid & generationMask
}

// Code is the reason for a refusal or a reset. Codes from CodeUser are the program's.
type Code uint8

// The codes of this package.
const (
	CodeUnspecified Code = iota
	CodeBusy             // the endpoint has MaxConns connections, or nobody accepts them
	CodeForbidden        // the endpoint takes no connections from this process
	CodeProtocol         // the other end broke the protocol
	CodeUser        Code = 16
)

// notice tells that a connection is over: it was reset, or the side that has not opened it has nothing more to
// receive.
type notice struct {
	kind       kind
	stream     uint16
	generation uint32
	code       Code // of a reset
}

const noticeSize = 3

func (n notice) append(b []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, n.stream), byte(n.code))
}

func parseNotice(k kind, generation uint32, b []byte) (n notice, ok bool) {
	if len(b) != noticeSize {
		return n, false
	}
	return notice{k, binary.BigEndian.Uint16(b), generation, Code(b[2])}, true
}
