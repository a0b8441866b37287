package wire

import (
	"errors"
	"strconv"
)

// Bounds of a description, so that a hostile packet makes a short line too.
const (
	describeBytes = 4096 // after so many bytes, no further chunk
	describeItems = 8    // entries of a list
	describeText  = 64   // bytes of a text
)

// Describe returns one line about a packet: ports, verification tag, whether
// the checksum is wrong, and every chunk with its main fields. It is for people
// and tests; the format may change.
//
//	5001>5002 tag=9a1b00c3: SACK cum=17 rwnd=131072 gap=2-3; DATA BE tsn=40 sid=1 ssn=7 ppid=0 len=1432
func Describe(pkt []byte) string { return string(AppendDescription(nil, pkt)) }

// AppendDescription appends what [Describe] returns to b. It does not allocate
// if b has room.
func AppendDescription(b, pkt []byte) []byte {
	h, err := ParseHeader(pkt)
	if err != nil {
		return appendErr(append(b, "packet"...), err)
	}
	b = strconv.AppendUint(b, uint64(h.SrcPort), 10)
	b = append(b, '>')
	b = strconv.AppendUint(b, uint64(h.DstPort), 10)
	b = append(b, " tag="...)
	b = appendHex32(b, h.VTag)
	if h.Checksum == 0 {
		b = append(b, " zero-checksum"...)
	} else if !VerifyChecksum(pkt) {
		b = append(b, " bad-checksum"...)
	}
	b = append(b, ':')
	start, n, more := len(b), 0, 0
	it := NewChunks(pkt[HeaderLen:])
	for ; it.Next(); n++ {
		if len(b)-start > describeBytes {
			more++
			continue
		}
		b = append(b, sep(n, " ", "; ")...)
		b = AppendChunkDescription(b, it.Chunk())
	}
	b = appendMore(b, more, "; ")
	if it.err != nil {
		b = appendErr(append(b, " …"...), it.err)
	}
	return b
}

// AppendChunkDescription appends the part of a description that is about one
// chunk to b.
func AppendChunkDescription(b []byte, c Chunk) []byte {
	if s := c.Type.name(); s != "" {
		b = append(b, s...)
	} else {
		b = append(b, "chunk(0x"...)
		b = appendHex(b, uint64(c.Type), 2)
		b = append(b, ')')
	}
	b, err := appendChunkFields(b, c)
	if err != nil {
		b = appendErr(b, err)
	}
	return b
}

func appendChunkFields(b []byte, c Chunk) ([]byte, error) {
	switch c.Type {
	case ChunkData:
		d, err := ParseData(c)
		if err != nil && !errors.Is(err, ErrNoUserData) {
			return b, err
		}
		b = appendDataFields(b, &d)
		b = appendNum(b, " ssn=", d.SSN)
		b = appendNum(b, " ppid=", d.PPID)
		return appendNum(b, " len=", len(d.Payload)), err
	case ChunkIData:
		d, err := ParseIData(c)
		if err != nil && !errors.Is(err, ErrNoUserData) {
			return b, err
		}
		b = appendDataFields(b, &d)
		b = appendNum(b, " mid=", d.MID)
		if d.Begin {
			b = appendNum(b, " ppid=", d.PPID)
		} else {
			b = appendNum(b, " fsn=", d.FSN)
		}
		return appendNum(b, " len=", len(d.Payload)), err
	case ChunkInit, ChunkInitAck:
		x, err := parseInit(c, c.Type)
		if err != nil {
			return b, err
		}
		b = appendHex32(append(b, " tag="...), x.Tag)
		b = appendNum(b, " rwnd=", x.RWND)
		b = appendNum(b, " out=", x.OutStreams)
		b = appendNum(b, " in=", x.InStreams)
		b = appendNum(b, " tsn=", x.TSN)
		return appendParams(b, x.Params), nil
	case ChunkSack:
		x, err := ParseSack(c)
		if err != nil {
			return b, err
		}
		b = appendNum(b, " cum=", x.CumTSN)
		b = appendNum(b, " rwnd=", x.RWND)
		return appendSackLists(b, &x), nil
	case ChunkHeartbeat, ChunkHeartbeatAck:
		x, err := parseHeartbeat(c, c.Type)
		if err != nil {
			return b, err
		}
		return appendNum(b, " info=", len(x.Info)), nil
	case ChunkAbort:
		x, err := ParseAbort(c)
		return appendCauses(appendReflected(b, x.Reflected), x.Causes), err
	case ChunkError:
		x, err := ParseOpError(c)
		return appendCauses(b, x.Causes), err
	case ChunkShutdown:
		x, err := ParseShutdown(c)
		return appendNum(b, " cum=", x.CumTSN), err
	case ChunkShutdownAck, ChunkCookieAck:
		return b, parseEmpty(c, c.Type)
	case ChunkShutdownComplete:
		x, err := ParseShutdownComplete(c)
		return appendReflected(b, x.Reflected), err
	case ChunkCookieEcho:
		x, err := ParseCookieEcho(c)
		return appendNum(b, " len=", len(x.Cookie)), err
	case ChunkECNE, ChunkCWR:
		tsn, err := parseUint32(c, c.Type)
		return appendNum(b, " tsn=", tsn), err
	case ChunkAuth:
		x, err := ParseAuth(c)
		b = appendNum(b, " key=", x.KeyID)
		b = appendNum(b, " hmac=", x.HMACID)
		return appendNum(b, " len=", len(x.HMAC)), err
	case ChunkForwardTSN, ChunkIForwardTSN:
		return appendForward(b, c)
	case ChunkReConfig:
		x, err := ParseReConfig(c)
		return appendParams(b, x.Params), err
	case ChunkAsconf:
		x, err := ParseAsconf(c)
		if err != nil {
			return b, err
		}
		b = appendNum(b, " seq=", x.Seq)
		b = x.Addr.AppendTo(append(b, " addr="...))
		return appendParams(b, x.Params), nil
	case ChunkAsconfAck:
		x, err := ParseAsconfAck(c)
		return appendParams(appendNum(b, " seq=", x.Seq), x.Params), err
	}
	// PAD, and what this package does not know.
	return appendNum(b, " len=", len(c.Raw)), nil
}

// appendDataFields appends what DATA and I-DATA have in common.
func appendDataFields(b []byte, d *Data) []byte {
	b = append(b, ' ')
	for _, f := range [...]struct {
		on bool
		c  byte
	}{{d.Immediate, 'I'}, {d.Unordered, 'U'}, {d.Begin, 'B'}, {d.End, 'E'}} {
		if f.on {
			b = append(b, f.c)
		}
	}
	if d.flags() != 0 {
		b = append(b, ' ')
	}
	b = appendNum(b, "tsn=", d.TSN)
	return appendNum(b, " sid=", d.SID)
}

func appendSackLists(b []byte, x *Sack) []byte {
	for i := range min(x.Gaps.Len(), describeItems) {
		g := x.Gaps.At(i)
		b = appendNum(b, sep(i, " gap=", ","), g.Start)
		b = appendNum(b, "-", g.End)
	}
	b = appendMore(b, x.Gaps.Len()-describeItems, ",")
	for i := range min(x.Dups.Len(), describeItems) {
		b = appendNum(b, sep(i, " dup=", ","), x.Dups.At(i))
	}
	return appendMore(b, x.Dups.Len()-describeItems, ",")
}

func appendForward(b []byte, c Chunk) ([]byte, error) {
	if c.Type == ChunkForwardTSN {
		x, err := ParseForwardTSN(c)
		if err != nil {
			return b, err
		}
		b = appendNum(b, " cum=", x.CumTSN)
		for i := range min(x.Skips.Len(), describeItems) {
			s := x.Skips.At(i)
			b = appendNum(b, sep(i, " skip=", ","), s.SID)
			b = appendNum(b, ":", s.SSN)
		}
		return appendMore(b, x.Skips.Len()-describeItems, ","), nil
	}
	x, err := ParseIForwardTSN(c)
	if err != nil {
		return b, err
	}
	b = appendNum(b, " cum=", x.CumTSN)
	for i := range min(x.Skips.Len(), describeItems) {
		s := x.Skips.At(i)
		b = appendNum(b, sep(i, " skip=", ","), s.SID)
		b = appendNum(b, ":", s.MID)
		if s.Unordered {
			b = append(b, 'U')
		}
	}
	return appendMore(b, x.Skips.Len()-describeItems, ","), nil
}

func appendReflected(b []byte, on bool) []byte {
	if on {
		return append(b, " T"...)
	}
	return b
}

func appendErr(b []byte, err error) []byte {
	b = append(b, " ["...)
	b = append(b, err.Error()...)
	return append(b, ']')
}

// appendMore appends that n entries of a list were left out, if any were.
func appendMore(b []byte, n int, separator string) []byte {
	if n <= 0 {
		return b
	}
	b = append(b, separator...)
	b = append(b, '+')
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, " more"...)
}

// sep returns what stands before entry i of a list.
func sep(i int, first, others string) string {
	if i == 0 {
		return first
	}
	return others
}

func appendNum[T uint8 | uint16 | uint32 | int](b []byte, key string, x T) []byte {
	return strconv.AppendUint(append(b, key...), uint64(x), 10)
}

func appendHex32(b []byte, x uint32) []byte { return appendHex(b, uint64(x), 8) }

func appendHex(b []byte, x uint64, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		b = append(b, "0123456789abcdef"[x>>(4*i)&15])
	}
	return b
}
