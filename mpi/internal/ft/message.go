package ft

import "encoding/binary"

// Message is a message between the failure services of two ranks. All fields are big
// endian, sets of members have a bit for each:
//
//	step (1) | comm (8) | round (8) | rank (4) | n (4)
//	flags (8) | failed (⌈n/8⌉) | acked (⌈n/8⌉)	not with StepRevoke
type Message struct {
	Step  Step
	Comm  uint64 // communicator
	Round uint64 // of its agreements
	Rank  int    // index of the sender among the members
	N     int    // number of members
	Body  []byte // the ballot
}

const (
	headerLen = 1 + 8 + 8 + 4 + 4
	ballotLen = 8 // and two bits per member
	// maxMembers bounds the members of a communicator: two groups of as many ranks as a
	// job may have.
	maxMembers = 2 << 16
)

// MessageLen returns the length of the longest message about n members.
func MessageLen(n int) int { return headerLen + ballotLen + 2*setLen(n) }

// Parse decodes a message; its Body aliases b. It reports false for a malformed one.
func Parse(b []byte) (m Message, ok bool) {
	if len(b) < headerLen || b[0] == 0 || b[0] >= byte(stepLimit) {
		return m, false
	}
	m.Step = Step(b[0])
	m.Comm, m.Round = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])
	m.Rank, m.N = int(binary.BigEndian.Uint32(b[17:])), int(binary.BigEndian.Uint32(b[21:]))
	m.Body = b[headerLen:]
	if m.N < 1 || m.N > maxMembers || m.Rank >= m.N {
		return m, false
	}
	want := 0
	if m.Step != StepRevoke {
		want = ballotLen + 2*setLen(m.N)
	}
	return m, len(m.Body) == want
}

// setLen returns the length of a set of n members.
func setLen(n int) int { return (n + 7) / 8 }

// Encode returns the message with a ballot, which is nil for StepRevoke.
func (m *Message) Encode(b *Ballot) []byte {
	out := make([]byte, 0, MessageLen(m.N))
	out = append(out, byte(m.Step))
	out = binary.BigEndian.AppendUint64(out, m.Comm)
	out = binary.BigEndian.AppendUint64(out, m.Round)
	out = binary.BigEndian.AppendUint32(out, uint32(m.Rank))
	out = binary.BigEndian.AppendUint32(out, uint32(m.N))
	if b != nil {
		out = binary.BigEndian.AppendUint64(out, b.Flags)
		out = appendSet(appendSet(out, b.Failed), b.Acked)
	}
	return out
}

func appendSet(out []byte, set []bool) []byte {
	at := len(out)
	out = append(out, make([]byte, setLen(len(set)))...)
	for i, in := range set {
		if in {
			out[at+i/8] |= 1 << (i % 8)
		}
	}
	return out
}

// Ballot decodes the ballot of a message that Parse has accepted.
func (m *Message) Ballot() *Ballot {
	b := NewBallot(m.N)
	b.Flags = binary.BigEndian.Uint64(m.Body)
	sets := m.Body[ballotLen:]
	for i := range m.N {
		b.Failed[i] = sets[i/8]&(1<<(i%8)) != 0
		b.Acked[i] = sets[setLen(m.N)+i/8]&(1<<(i%8)) != 0
	}
	return b
}
