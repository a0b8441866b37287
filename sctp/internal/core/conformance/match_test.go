package conformance

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/weftstack/weft/sctp/wire"
)

// expect takes the next packet that was sent and compares it.
func (r *runner) expect(s string) error {
	if len(r.sent) == 0 {
		return fmt.Errorf("nothing was sent")
	}
	p := r.sent[0]
	r.sent = r.sent[1:]
	if err := r.match(s, p); err != nil {
		return fmt.Errorf("%w\n\tgot %s (to %v)", err, wire.Describe(p.data), p.to)
	}
	return nil
}

func (r *runner) match(s string, p outPacket) error {
	head, want := splitChunks(s)
	h, err := wire.ParseHeader(p.data)
	if err != nil {
		return err
	}
	if !wire.VerifyChecksum(p.data) || h.SrcPort != localPort || h.DstPort != peerPort || len(p.data)%4 != 0 {
		return fmt.Errorf("bad checksum, length or ports")
	}
	if err := wellMade(p.data[wire.HeaderLen:]); err != nil {
		return err
	}
	if err := r.signed(p.data); err != nil {
		return err
	}
	f, err := splitFields(head)
	if err != nil {
		return err
	}
	have := map[string]string{"from": p.from.Addr().String(), "tag": fmt.Sprintf("%08x", h.VTag), "to": p.to.Addr().String(), "udp": fmt.Sprint(p.to.Port()),
		"ecn": fmt.Sprint(p.ecn), "fragment": fmt.Sprint(p.cut), "size": fmt.Sprint(len(p.data))}
	if _, ok := f.get("tag"); !ok && len(want) > 0 {
		tag := "PT"
		if want[0] == "INIT" || strings.HasPrefix(want[0], "INIT ") && !strings.HasPrefix(want[0], "INIT ACK") {
			tag = "0"
		}
		f.kv = append(f.kv, field{"tag", "=", tag})
	}
	if err := r.compare(f.kv, have); err != nil {
		return err
	}
	more := len(want) > 0 && want[len(want)-1] == "*"
	if more {
		want = want[:len(want)-1]
	}
	it := wire.NewChunks(p.data[wire.HeaderLen:])
	for i := 0; ; i++ {
		if !it.Next() {
			if i < len(want) {
				return fmt.Errorf("no chunk %s", want[i])
			}
			return it.Err()
		}
		if i >= len(want) {
			if more {
				return nil
			}
			return fmt.Errorf("more chunks than expected")
		}
		d := string(wire.AppendChunkDescription(nil, it.Chunk()))
		if err := r.matchChunk(want[i], d); err != nil {
			return fmt.Errorf("%w in %s", err, d)
		}
	}
}

// definedFlags are the flags that chunks have; others have none.
var definedFlags = map[wire.ChunkType]byte{wire.ChunkData: 0xf, wire.ChunkIData: 0xf, wire.ChunkAbort: 1, wire.ChunkShutdownComplete: 1}

// wellMade checks what RFC 9260, Section 3, asks of every sender and no script
// says: flags without a meaning are 0 (3.2), so is the padding, of chunks (3.2)
// and of parameters (3.2.1), and an INIT or INIT ACK has a parameter twice only
// where there can be several (3.3.2 and 3.3.3).
func wellMade(chunks []byte) error {
	return eachTLV(chunks, func(b []byte) error {
		c := wire.ChunkType(b[0])
		if b[1]&^definedFlags[c] != 0 {
			return fmt.Errorf("%s with flags %#x", c, b[1])
		}
		if c != wire.ChunkInit && c != wire.ChunkInitAck {
			return nil
		}
		seen := map[wire.ParamType]bool{}
		return eachTLV(b[20:], func(b []byte) error {
			p := wire.ParamType(binary.BigEndian.Uint16(b))
			switch p {
			case wire.ParamIPv4, wire.ParamIPv6, wire.ParamUnrecognized:
				return nil
			}
			if seen[p] {
				return fmt.Errorf("%s has %s twice", c, p)
			}
			seen[p] = true
			return nil
		})
	})
}

// eachTLV calls f with every chunk, or parameter, of a list, and checks that the
// padding between them, and behind the last, is of at most three zeros.
func eachTLV(b []byte, f func(tlv []byte) error) error {
	for len(b) > 0 {
		if len(b) < 4 {
			return fmt.Errorf("%d bytes too many", len(b))
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < 4 || n > len(b) {
			return fmt.Errorf("length %d in %d bytes", n, len(b))
		}
		if err := f(b[:n]); err != nil {
			return err
		}
		end := min((n+3)&^3, len(b)) // the last parameter's padding is the chunk's
		for _, x := range b[n:end] {
			if x != 0 {
				return fmt.Errorf("padding %x", b[n:end])
			}
		}
		b = b[end:]
	}
	return nil
}

// matchChunk compares a chunk with its description by package wire.
func (r *runner) matchChunk(want, d string) error {
	w, err := splitFields(want)
	if err != nil {
		return err
	}
	list := ""
	if i := strings.IndexByte(d, '{'); i >= 0 {
		list, d = d[i:], d[:i]
	}
	got, err := splitFields(d)
	if err != nil {
		return err
	}
	if n := len(got.words); n > 0 && got.words[n-1] == "more" { // of a list that was cut
		got.words = got.words[:n-1]
	}
	name, flags := chunkName(got.words)
	wantName, wantFlags := chunkName(w.words)
	if name != wantName {
		return fmt.Errorf("not %s", wantName)
	}
	if wantFlags == "-" {
		wantFlags = ""
		if flags != "" {
			return fmt.Errorf("flags")
		}
	}
	if wantFlags != "" && flags != wantFlags {
		return fmt.Errorf("flags are not %s", wantFlags)
	}
	have := map[string]string{}
	for _, x := range got.kv {
		have[x.key] = x.val
	}
	for _, x := range w.list {
		no, not := strings.CutPrefix(x, "!")
		switch {
		case x == "" && list != "":
			return fmt.Errorf("list is not empty: %s", list)
		case not && strings.Contains(list, no), !not && !strings.Contains(list, r.substitute(x)):
			return fmt.Errorf("%s: list is %s", x, list)
		}
	}
	if w.text != "" && !strings.Contains(list, w.text) {
		return fmt.Errorf("no %q", w.text)
	}
	return r.compare(w.kv, have)
}

var flagWord = regexp.MustCompile(`^([IUBET]+|-)$`)

// chunkName separates the name of a chunk from its flags.
func chunkName(words []string) (name, flags string) {
	if n := len(words); n > 1 && flagWord.MatchString(words[n-1]) {
		words, flags = words[:n-1], words[n-1]
	}
	return strings.Join(words, " "), flags
}

var angle = regexp.MustCompile(`<([^>]*)>`)

// substitute replaces <number> by its value.
func (r *runner) substitute(s string) string {
	return angle.ReplaceAllStringFunc(s, func(m string) string {
		v, err := r.number(m[1 : len(m)-1])
		if err != nil {
			return m
		}
		return strconv.FormatUint(uint64(v), 10)
	})
}

// compare checks values; "none" stands for an absent one.
func (r *runner) compare(want []field, have map[string]string) error {
	for _, w := range want {
		got, ok := have[w.key]
		if w.val == "none" {
			if ok != (w.op == "!=") {
				return fmt.Errorf("%s is %q", w.key, got)
			}
			continue
		}
		if !ok {
			return fmt.Errorf("no %s", w.key)
		}
		base := 10
		if w.key == "tag" {
			base = 16
		}
		x, isNum := strconv.ParseUint(got, base, 64)
		if name, ok := strings.CutPrefix(w.val, "?"); ok {
			r.vars[name] = uint32(x)
			continue
		}
		if err := r.compareOne(w, got, x, isNum == nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) compareOne(w field, got string, x uint64, isNum bool) error {
	if !isNum || got == w.val || strings.Contains(w.val, ",") {
		same := got == w.val
		if !same && strings.Contains(w.val, ",") { // a list of numbers
			var list []string
			for _, v := range strings.Split(w.val, ",") {
				n, err := r.number(v)
				if err != nil {
					break
				}
				list = append(list, fmt.Sprint(n))
			}
			same = got == strings.Join(list, ",")
		}
		if same == (w.op == "!=") {
			return fmt.Errorf("%s is %s, want %s%s", w.key, got, w.op, w.val)
		}
		return nil
	}
	n, err := r.number(w.val)
	if err != nil {
		return err
	}
	y, ok := uint64(n), false
	switch w.op {
	case "=":
		ok = x == y
	case "!=":
		ok = x != y
	case ">=":
		ok = x >= y
	case "<=":
		ok = x <= y
	}
	if !ok {
		return fmt.Errorf("%s is %s, want %s%s (%d)", w.key, got, w.op, w.val, y)
	}
	return nil
}
