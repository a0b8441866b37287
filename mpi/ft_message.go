package mpi

import "encoding/binary"

// ftMessage is a message between the failure services of two ranks. All fields are big
// endian, sets of members have a bit for each:
//
//	step (1) | comm (8) | round (8) | rank (4) | n (4)
//	flags (8) | failed (⌈n/8⌉) | acked (⌈n/8⌉)	not with ftRevoke
type ftMessage struct {
	step  ftStep
	comm  uint64 // communicator
	round uint64 // of its agreements
	rank  int    // of the sender among the members
	n     int    // members
	body  []byte // the ballot
}

const (
	ftHeader = 1 + 8 + 8 + 4 + 4
	ftBallot = 8 // and two bits per member
	// maxFTMembers bounds the members of a communicator: two groups of as many ranks as a
	// job may have.
	maxFTMembers = 2 << 16
)

// ftMessageLen returns the length of the longest message about n members.
func ftMessageLen(n int) int { return ftHeader + ftBallot + 2*setLen(n) }

// parseFTMessage reads a message, whose body aliases b. It reports false for one that is malformed.
func parseFTMessage(b []byte) (m ftMessage, ok bool) {
	if len(b) < ftHeader || b[0] == 0 || b[0] >= byte(ftStepLimit) {
		return m, false
	}
	m.step = ftStep(b[0])
	m.comm, m.round = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])
	m.rank, m.n = int(binary.BigEndian.Uint32(b[17:])), int(binary.BigEndian.Uint32(b[21:]))
	m.body = b[ftHeader:]
	if m.n < 1 || m.n > maxFTMembers || m.rank >= m.n {
		return m, false
	}
	want := 0
	if m.step != ftRevoke {
		want = ftBallot + 2*setLen(m.n)
	}
	return m, len(m.body) == want
}

// setLen returns the length of a set of n members.
func setLen(n int) int { return (n + 7) / 8 }

// encode returns the message with a ballot, which is nil for ftRevoke.
func (m *ftMessage) encode(b *ballot) []byte {
	out := make([]byte, 0, ftMessageLen(m.n))
	out = append(out, byte(m.step))
	out = binary.BigEndian.AppendUint64(out, m.comm)
	out = binary.BigEndian.AppendUint64(out, m.round)
	out = binary.BigEndian.AppendUint32(out, uint32(m.rank))
	out = binary.BigEndian.AppendUint32(out, uint32(m.n))
	if b != nil {
		out = binary.BigEndian.AppendUint64(out, b.flags)
		out = appendSet(appendSet(out, b.failed), b.acked)
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

// ballot reads the ballot.
func (m *ftMessage) ballot() *ballot {
	b := newBallot(m.n)
	b.flags = binary.BigEndian.Uint64(m.body)
	sets := m.body[ftBallot:]
	for i := range m.n {
		b.failed[i] = sets[i/8]&(1<<(i%8)) != 0
		b.acked[i] = sets[setLen(m.n)+i/8]&(1<<(i%8)) != 0
	}
	return b
}
