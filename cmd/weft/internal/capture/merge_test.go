package capture

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// captured encodes one record.
func captured(when int64, from, to string, payload string) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(when))
	for _, s := range []string{from, to} {
		a := netip.MustParseAddrPort(s)
		ip := make([]byte, 16)
		copy(ip, a.Addr().AsSlice())
		family := byte(6)
		if a.Addr().Is4() {
			family = 4
		}
		b = append(append(b, family), ip...)
		b = binary.BigEndian.AppendUint16(b, a.Port())
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(payload))), payload...)
}

func TestMergeCapturesOrdersByTime(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "1"), filepath.Join(dir, "2")
	a := append(captured(10, "127.0.0.1:1", "127.0.0.1:2", "first"), captured(30, "127.0.0.1:1", "127.0.0.1:2", "third")...)
	b := captured(20, "[::1]:3", "[::1]:4", "second")
	b = append(b, captured(40, "[::1]:3", "[::1]:4", "cut off by a kill")[:60]...)
	os.WriteFile(one, a, 0o666)
	os.WriteFile(two, b, 0o666)
	var out bytes.Buffer
	n, err := Merge(&out, []string{one, two, filepath.Join(dir, "absent")})
	if err != nil || n != 3 {
		t.Fatalf("%d records, %v; want 3", n, err)
	}
	r, err := pcapgo.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"first", "second", "third"} {
		data, info, err := r.ReadPacketData()
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(data, layers.LinkTypeRaw, gopacket.Default)
		udp, ok := p.TransportLayer().(*layers.UDP)
		if !ok || string(udp.Payload) != want || info.Timestamp.UnixNano() != int64(10*(i+1)) {
			t.Errorf("packet %d at %d: %v", i, info.Timestamp.UnixNano(), p)
		}
	}
}

func TestMergeCapturesRefusesDamage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	good := captured(1, "127.0.0.1:1", "127.0.0.1:2", "x")
	bad := bytes.Clone(good)
	bad[8] = 9
	long := bytes.Clone(good)
	binary.BigEndian.PutUint32(long[headerLen-4:], maxDatagram+1)
	for _, b := range [][]byte{bad, long, append(bytes.Clone(good), bad...)} {
		os.WriteFile(file, b, 0o666)
		if _, err := Merge(io.Discard, []string{file}); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("error = %v, want one that says the capture is damaged", err)
		}
	}
}
