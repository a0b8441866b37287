package conformance

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/weftstack/weft/sctp/wire"
)

// number evaluates an expression like 17, 0x1f, P+3 or LT-1.
func (r *runner) number(s string) (uint32, error) {
	total, sign := uint32(0), uint32(1)
	for s != "" {
		i := strings.IndexAny(s[1:], "+-") + 1
		if i == 0 {
			i = len(s)
		}
		term := s[:i]
		v, ok := r.symbol(term)
		if !ok {
			x, err := strconv.ParseUint(term, 0, 32)
			if err != nil {
				return 0, fmt.Errorf("%q is no number", term)
			}
			v = uint32(x)
		}
		total += sign * v
		if s = s[i:]; s != "" {
			if sign = 1; s[0] == '-' {
				sign = ^uint32(0)
			}
			if s = s[1:]; s == "" {
				return 0, fmt.Errorf("number ends in a sign")
			}
		}
	}
	return total, nil
}

func (r *runner) symbol(s string) (uint32, bool) {
	switch s {
	case "P":
		return peerTSN, true
	case "PT":
		return peerTag, true
	case "L":
		return r.tsn, true
	case "LT":
		if r.assoc != nil {
			return r.assoc.Tag(), true
		}
		return r.init.Tag, true
	case "NT": // of the INIT or INIT ACK that was sent last
		return r.init.Tag, true
	case "N":
		return r.init.TSN, true
	}
	v, ok := r.vars[s]
	return v, ok
}

// args reads the values of a chunk to build; the first error sticks.
type args struct {
	fields
	r   *runner
	err error
}

func (a *args) num(key string, def uint32) uint32 {
	s, ok := a.get(key)
	if !ok {
		return def
	}
	v, err := a.r.number(s)
	if err != nil && a.err == nil {
		a.err = err
	}
	return v
}

func (a *args) nums(key string) (list []uint32) {
	s, ok := a.get(key)
	if !ok {
		return nil
	}
	// Within braces a comma would end the item.
	for _, x := range strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == '|' }) {
		v, err := a.r.number(x)
		if err != nil && a.err == nil {
			a.err = err
		}
		list = append(list, v)
	}
	return list
}

func (a *args) bytes(key string) []byte {
	s, _ := a.get(key)
	b, err := hex.DecodeString(s)
	if err != nil && a.err == nil {
		a.err = err
	}
	return b
}

// fill returns n bytes that differ from one TSN to the next.
func fill(tsn uint32, n int) []byte {
	return bytes.Repeat([]byte{byte('a' + tsn%26)}, n)
}

// buildChunk builds what a line of a script describes.
func (r *runner) buildChunk(s string) ([]byte, error) {
	f, err := splitFields(s)
	if err != nil {
		return nil, err
	}
	a := &args{fields: f, r: r}
	name := strings.Join(f.words, " ")
	flags := ""
	if k := len(f.words) - 1; k > 0 && strings.Trim(f.words[k], "IUBET-") == "" {
		name, flags = strings.Join(f.words[:k], " "), f.words[k]
	}
	b, err := a.chunk(name, flags)
	if err == nil {
		err = a.err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	// What no encoder does.
	if v, ok := f.get("_flags"); ok {
		x, _ := strconv.ParseUint(v, 0, 8)
		b[1] = byte(x)
	}
	if _, ok := f.get("_length"); ok {
		n := a.num("_length", 0)
		b[2], b[3] = byte(n>>8), byte(n)
	}
	if v, ok := f.get("_pad"); ok { // padding bytes of this value
		x, _ := strconv.ParseUint(v, 0, 8)
		for i := int(b[2])<<8 | int(b[3]); i < len(b); i++ {
			b[i] = byte(x)
		}
	}
	if v, ok := f.get("_reserved"); ok { // of the first entry of an I-FORWARD-TSN
		x, _ := strconv.ParseUint(v, 0, 8)
		b[11] |= byte(x)
	}
	if _, ok := f.get("_cut"); ok {
		b = b[:len(b)-int(a.num("_cut", 0))]
	}
	return b, a.err
}

func (a *args) data(flags string) wire.Data {
	d := wire.Data{TSN: a.num("tsn", 0), SID: uint16(a.num("sid", 0)), SSN: uint16(a.num("ssn", 0)),
		MID: a.num("mid", 0), FSN: a.num("fsn", 0), PPID: a.num("ppid", 0),
		Begin: strings.Contains(flags, "B"), End: strings.Contains(flags, "E"),
		Unordered: strings.Contains(flags, "U"), Immediate: strings.Contains(flags, "I")}
	d.Payload = []byte(a.text)
	if a.text == "" {
		d.Payload = fill(d.TSN, int(a.num("len", 8)))
	}
	return d
}

func (a *args) chunk(name, flags string) ([]byte, error) {
	reflected := strings.Contains(flags, "T")
	list, err := a.items()
	if err != nil {
		return nil, err
	}
	switch name {
	case "DATA":
		return wire.AppendData(nil, a.data(flags)), nil
	case "I-DATA":
		return wire.AppendIData(nil, a.data(flags)), nil
	case "INIT", "INIT ACK":
		a.r.peerParams = list
		x := wire.Init{Tag: a.num("tag", peerTag), RWND: a.num("rwnd", peerRWND), OutStreams: uint16(a.num("out", 10)),
			InStreams: uint16(a.num("in", 10)), TSN: a.num("tsn", peerTSN), Params: list}
		if name == "INIT" {
			return wire.AppendInit(nil, x), nil
		}
		return wire.AppendInitAck(nil, x), nil
	case "SACK":
		var gaps []wire.GapBlock
		if s, ok := a.get("gap"); ok {
			for _, g := range strings.Split(s, ",") {
				var b wire.GapBlock
				if _, err := fmt.Sscanf(g, "%d-%d", &b.Start, &b.End); err != nil {
					return nil, err
				}
				gaps = append(gaps, b)
			}
		}
		return wire.AppendSack(nil, a.num("cum", 0), a.num("rwnd", peerRWND), gaps, a.nums("dup")), nil
	case "HEARTBEAT", "HEARTBEAT ACK":
		info := a.r.heartbeat
		if name == "HEARTBEAT" {
			info = fill(0, 20)
		}
		if _, ok := a.get("info"); ok {
			info = fill(0, int(a.num("info", 0)))
		}
		if a.has("old") {
			info = a.r.oldHeartbeat
		}
		if a.has("forged") {
			info = bytes.Clone(info)
			info[0] ^= 1
		}
		return wire.AppendChunk(nil, map[string]wire.ChunkType{"HEARTBEAT": wire.ChunkHeartbeat,
			"HEARTBEAT ACK": wire.ChunkHeartbeatAck}[name], 0, wire.AppendParam(nil, wire.ParamHeartbeatInfo, info)), nil
	case "HEARTBEAT ACK forged", "HEARTBEAT ACK old":
		return a.chunk("HEARTBEAT ACK", flags)
	case "ABORT":
		return wire.AppendAbort(nil, wire.Abort{Reflected: reflected, Causes: list}), nil
	case "ERROR":
		return wire.AppendOpError(nil, wire.OpError{Causes: list}), nil
	case "SHUTDOWN":
		return wire.AppendShutdown(nil, wire.Shutdown{CumTSN: a.num("cum", 0)}), nil
	case "SHUTDOWN ACK":
		return wire.AppendShutdownAck(nil), nil
	case "SHUTDOWN COMPLETE":
		return wire.AppendShutdownComplete(nil, wire.ShutdownComplete{Reflected: reflected}), nil
	case "COOKIE ECHO", "COOKIE ECHO forged", "COOKIE ECHO old":
		c := bytes.Clone(a.r.cookie)
		switch name {
		case "COOKIE ECHO old":
			c = bytes.Clone(a.r.oldCookie)
		case "COOKIE ECHO forged":
			n := int(a.num("byte", 40))
			if n >= len(c) {
				return nil, fmt.Errorf("the cookie has %d bytes", len(c))
			}
			c[n] ^= 1
		}
		if n := int(a.num("len", uint32(len(c)))); n <= len(c) {
			c = c[:n]
		} else {
			c = append(c, make([]byte, n-len(c))...)
		}
		return wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: c}), nil
	case "COOKIE ACK":
		return wire.AppendCookieAck(nil), nil
	case "ECNE":
		return wire.AppendECNE(nil, wire.ECNE{TSN: a.num("tsn", 0)}), nil
	case "CWR":
		return wire.AppendCWR(nil, wire.CWR{TSN: a.num("tsn", 0)}), nil
	case "FORWARD-TSN":
		var skips []wire.Skip
		err := a.skips(func(sid uint16, n uint32, _ bool) { skips = append(skips, wire.Skip{SID: sid, SSN: uint16(n)}) })
		return wire.AppendForwardTSN(nil, a.num("cum", 0), skips), err
	case "I-FORWARD-TSN":
		var skips []wire.ISkip
		err := a.skips(func(sid uint16, n uint32, u bool) { skips = append(skips, wire.ISkip{SID: sid, MID: n, Unordered: u}) })
		return wire.AppendIForwardTSN(nil, a.num("cum", 0), skips), err
	case "RE-CONFIG":
		return wire.AppendReConfig(nil, wire.ReConfig{Params: list}), nil
	case "AUTH", "AUTH forged":
		// A forged one is of letters; zeros are filled in later.
		sum := fill(0, int(a.num("len", 20)))
		if a.num("hmac", 1) == wire.HMACSHA256 {
			sum = fill(0, 32)
		}
		if name == "AUTH" {
			clear(sum)
		}
		return wire.AppendAuth(nil, wire.Auth{KeyID: uint16(a.num("key", 0)), HMACID: uint16(a.num("hmac", 1)), HMAC: sum}), nil
	case "ASCONF":
		return wire.AppendAsconf(nil, wire.Asconf{Seq: a.num("seq", peerTSN), Addr: a.asconfAddr(), Params: list}), nil
	case "ASCONF-ACK":
		return wire.AppendAsconfAck(nil, wire.AsconfAck{Seq: a.num("seq", 0), Params: list}), nil
	case "PAD":
		return wire.AppendPad(nil, int(a.num("len", 4))), nil
	case "RAW":
		return a.bytes("hex"), nil
	case "CHUNK":
		return wire.AppendChunk(nil, wire.ChunkType(a.num("type", 0)), byte(a.num("flags", 0)), fill(0, int(a.num("len", 0)))), nil
	}
	return nil, fmt.Errorf("unknown chunk %q", name)
}

// skips reads skip=sid:number,… with a U behind the number of unordered ones.
func (a *args) skips(add func(sid uint16, n uint32, u bool)) error {
	s, ok := a.get("skip")
	if !ok {
		return nil
	}
	for _, x := range strings.Split(s, ",") {
		n, u := strings.CutSuffix(x, "U")
		var sid uint16
		var num uint32
		if _, err := fmt.Sscanf(n, "%d:%d", &sid, &num); err != nil {
			return err
		}
		add(sid, num, u)
	}
	return nil
}
