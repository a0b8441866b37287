package interop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/rdmap"
)

// recordTCP passes on one TCP connection to addr, and writes it to a capture
// file. It returns the address to connect to, and what waits for the end of that
// connection and the last of the file.
func recordTCP(t *testing.T, file *packetFile, addr string) (at string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Add(1)
	go func() {
		defer wg.Done()
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		server, err := net.DialTimeout("tcp", addr, commandTime)
		if err != nil {
			t.Error(err)
			return
		}
		defer server.Close()
		// Not the ports that there are by chance: some mean other protocols to a decoder.
		a, b := netip.MustParseAddrPort("127.0.0.1:40001"), netip.MustParseAddrPort("127.0.0.1:40000")
		seqA, seqB := uint32(1000), uint32(2000)
		out := &tcpFlow{file: file, from: a, to: b, seq: &seqA, ack: &seqB}
		back := &tcpFlow{file: file, from: b, to: a, seq: &seqB, ack: &seqA}
		out.segment(nil, true, false, false)
		back.segment(nil, true, true, false)
		out.segment(nil, false, true, false)
		var mu sync.Mutex // both flows look at both numbers
		pass := func(from, to net.Conn, f *tcpFlow) {
			defer wg.Done()
			buf := make([]byte, 1400)
			for {
				n, err := from.Read(buf)
				mu.Lock()
				if n > 0 {
					f.segment(buf[:n], false, true, false)
				}
				if err != nil {
					f.segment(nil, false, true, true)
				}
				mu.Unlock()
				if n > 0 {
					to.Write(buf[:n])
				}
				if err != nil {
					to.(*net.TCPConn).CloseWrite()
					return
				}
			}
		}
		wg.Add(1)
		go pass(client, server, out)
		wg.Add(1)
		pass(server, client, back)
	}()
	return l.Addr().String(), wg.Wait
}

// TestMPACaptureDecodes has tshark decode a connection of `weft rping` over TCP
// with what it has itself: MPA, DDP and RDMAP.
func TestMPACaptureDecodes(t *testing.T) {
	bounded(t)
	if _, err := exec.LookPath("tshark"); err != nil {
		testenv.Lacking(t, "tshark not found: install Debian's tshark")
	}
	for _, tt := range []struct {
		name, size     string
		server, client []string
	}{
		{"CRC", "5000", nil, nil},
		{"no CRC", "5000", []string{"--crc=false"}, []string{"--crc=false"}},
		{"revision 1", "5000", nil, []string{"--revision=1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(within(t), 2*commandTime)
			defer cancel()
			port := testenv.FreePort(t)
			server := startRping(ctx, t, port, append([]string{"-S" + tt.size}, tt.server...)...)
			file := newPacketFile(t)
			proxy, recorded := recordTCP(t, file, fmt.Sprintf("127.0.0.1:%d", port))
			_, at, _ := net.SplitHostPort(proxy)
			const count = 5
			if _, errs, status := weft(t, append([]string{"rping", "-cV", fmt.Sprintf("-C%d", count), "-a127.0.0.1", "-p", at, "-S" + tt.size}, tt.client...)...); status != 0 {
				t.Fatal(errs)
			}
			server.end(t)
			recorded()
			if bad := tshark(t, file.name, "-Y", "_ws.malformed || _ws.expert.severity == error"); bad != nil {
				t.Errorf("the decoder objects to %d packets: %s", len(bad), bad[0])
			}
			for filter, n := range map[string]int{"iwarp_mpa.key.req": 1, "iwarp_mpa.key.rep": 1} {
				if found := tshark(t, file.name, "-Y", filter); len(found) != n {
					t.Errorf("%d packets with %s, want %d", len(found), filter, n)
				}
			}
			ops := make(map[rdmap.Opcode]int)
			for _, line := range tshark(t, file.name, "-Y", "iwarp_rdma", "-T", "fields", "-e", "iwarp_rdma.opcode") {
				for s := range strings.SplitSeq(line, ",") {
					n, err := strconv.ParseUint(s, 0, 8)
					if err != nil {
						t.Fatalf("opcode %q", s)
					}
					ops[rdmap.Opcode(n)]++
				}
			}
			if ops[rdmap.Send] != 4*count || ops[rdmap.ReadRequest] != count || ops[rdmap.ReadResponse] < count || ops[rdmap.Write] < count || len(ops) != 4 {
				t.Errorf("messages: %v", ops)
			}
		})
	}
}
