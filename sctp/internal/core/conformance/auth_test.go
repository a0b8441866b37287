package conformance

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/wire"
)

// keyVector returns the concatenation of RANDOM, CHUNKS and HMAC-ALGO of a list
// of parameters, without padding (RFC 4895, Section 6.1).
func keyVector(params []byte) (v []byte) {
	for _, want := range []wire.ParamType{wire.ParamRandom, wire.ParamChunkList, wire.ParamHMACAlgo} {
		it := wire.NewParams(params)
		for it.Next() {
			if p := it.Param(); p.Type == want {
				v = append(v, p.Raw...)
			}
		}
	}
	return v
}

// sign fills in the HMACs of AUTH chunks whose HMAC the script wants to be
// right: they consist of zeros. The key is the endpoint pair key of the script,
// which is empty by default.
func (r *runner) sign(pkt []byte) {
	var todo []int
	eachAuth(pkt, func(at int, sum []byte) {
		if len(sum) > 0 && len(bytes.Trim(sum, "\x00")) == 0 {
			todo = append(todo, at)
		}
	})
	for _, at := range slices.Backward(todo) { // the first covers the others
		copy(pkt[at+wire.AuthHeaderLen:at+(int(pkt[at+2])<<8|int(pkt[at+3]))], r.hmac(pkt[at:]))
	}
}

// signed checks the HMACs of the AUTH chunks of a packet of the end under test.
func (r *runner) signed(pkt []byte) (err error) {
	eachAuth(pkt, func(at int, sum []byte) {
		b := bytes.Clone(pkt[at:])
		clear(b[wire.AuthHeaderLen : wire.AuthHeaderLen+len(sum)])
		if want := r.hmac(b); !bytes.Equal(sum, want) {
			err = fmt.Errorf("HMAC is %x, want %x", sum, want)
		}
	})
	return err
}

// eachAuth calls f for every AUTH chunk of a packet, with its place and its HMAC.
func eachAuth(pkt []byte, f func(at int, sum []byte)) {
	for at := wire.HeaderLen; at+4 <= len(pkt); {
		n := int(pkt[at+2])<<8 | int(pkt[at+3])
		if n < 4 || at+n > len(pkt) {
			return
		}
		if wire.ChunkType(pkt[at]) == wire.ChunkAuth && n >= wire.AuthHeaderLen {
			f(at, pkt[at+wire.AuthHeaderLen:at+n])
		}
		at += wire.Padded(n)
	}
}

// hmac computes the HMAC of the rest of a packet, which begins with an AUTH chunk
// whose HMAC is zero (RFC 4895, Section 6.2).
func (r *runner) hmac(b []byte) []byte {
	small, large := keyVector(r.init.Params), keyVector(r.peerParams)
	if len(small) > len(large) || len(small) == len(large) && bytes.Compare(small, large) > 0 {
		small, large = large, small
	}
	h := sha1.New
	if b[7] == wire.HMACSHA256 {
		h = sha256.New
	}
	key := r.key
	if b[5] == 2 {
		key = r.key2
	}
	m := hmac.New(h, append(append(append([]byte(nil), key...), small...), large...))
	m.Write(b)
	return m.Sum(nil)
}

// setAuth is the part of a config line about RFC 4895 and RFC 5061.
func (r *runner) setAuth(x field) bool {
	c := &r.cfg
	switch x.key {
	case "auth": // the chunk types wanted authenticated, or "on" for none
		if c.Auth == nil {
			c.Auth = &auth.Config{}
		}
		for _, n := range strings.Split(x.val, ",") {
			if t, ok := chunkNames[n]; ok {
				c.Auth.Chunks = append(c.Auth.Chunks, t)
			}
		}
	case "key": // an endpoint pair shared key with number 1, of both ends
		c.Auth = &auth.Config{Keys: []auth.Key{{ID: 1, Secret: []byte(x.val)}}, Active: 1}
		r.key = []byte(x.val)
	case "key2": // another one, behind key
		r.key2 = []byte(x.val)
		c.Auth.Keys = append(c.Auth.Keys, auth.Key{ID: 2, Secret: r.key2})
	case "asconf":
		c.ChangeAddrs, c.InsecureAddrs = true, x.val == "insecure"
	default:
		return false
	}
	return true
}

// asconfAddr returns the address parameter of an ASCONF.
func (a *args) asconfAddr() netip.Addr {
	s, ok := a.get("addr")
	if !ok {
		return peerAddr
	}
	ip, err := netip.ParseAddr(s)
	if err != nil && a.err == nil {
		a.err = err
	}
	return ip
}
