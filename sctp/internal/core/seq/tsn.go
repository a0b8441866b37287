// Package seq has the sequence numbers of SCTP in serial number arithmetic (RFC
// 9260, Section 1.6) and collections of TSNs: [Map] tracks what was received,
// for SACKs (RFC 9260, Sections 6.2 and 6.7), and [Set] marks some of what is
// outstanding.
package seq

// TSN is a transmission sequence number: 32 bits in serial number arithmetic
// (RFC 9260, Section 1.6). Raw comparison operators must never be used on it.
type TSN uint32

// Less reports whether t comes before u.
func (t TSN) Less(u TSN) bool { return int32(t-u) < 0 }

// LessEq reports whether t comes before u or is u.
func (t TSN) LessEq(u TSN) bool { return int32(t-u) <= 0 }

// Sub returns the signed distance t - u.
func (t TSN) Sub(u TSN) int { return int(int32(t - u)) }

// SSN is a stream sequence number: 16 bits in serial number arithmetic
// (RFC 9260, Section 1.6).
type SSN uint16

// Less reports whether s comes before u.
func (s SSN) Less(u SSN) bool { return int16(s-u) < 0 }

// MID is a message identifier of I-DATA: 32 bits in serial number arithmetic
// (RFC 8260, Section 2.1).
type MID uint32

// Less reports whether m comes before u.
func (m MID) Less(u MID) bool { return int32(m-u) < 0 }
