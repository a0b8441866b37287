package interop

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
)

// packetFile is a capture file of raw IP packets that a test writes.
type packetFile struct {
	t    testing.TB
	name string
	mu   sync.Mutex
	full bool // guarded by mu
	file *os.File
	w    *pcapgo.Writer
	buf  gopacket.SerializeBuffer
}

func newPacketFile(t testing.TB) *packetFile {
	t.Helper()
	p := &packetFile{t: t, name: filepath.Join(t.TempDir(), "packets.pcap"), buf: gopacket.NewSerializeBuffer()}
	var err error
	if p.file, err = os.Create(p.name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.file.Close() })
	p.w = pcapgo.NewWriterNanos(p.file)
	if err := p.w.WriteFileHeader(1<<17, layers.LinkTypeRaw); err != nil {
		t.Fatal(err)
	}
	return p
}

// add writes a packet with the given layers above IPv4.
func (p *packetFile) add(ip *layers.IPv4, above ...gopacket.SerializableLayer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full {
		return
	}
	ip.Version, ip.TTL = 4, 64
	all := append([]gopacket.SerializableLayer{ip}, above...)
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(p.buf, opts, all...); err != nil {
		p.t.Error(err)
		return
	}
	b := p.buf.Bytes()
	if err := p.w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Now(), CaptureLength: len(b), Length: len(b)}, b); err != nil {
		p.t.Error(err)
	}
}

// end has the file stay as it is, to be read.
func (p *packetFile) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = true
}

// tap is a sctp.TransportConfig.Tap that writes what is sent.
func (p *packetFile) tap(e sctp.TapEvent) {
	if !e.Sent {
		return
	}
	udp := &layers.UDP{SrcPort: layers.UDPPort(e.Local.Port()), DstPort: layers.UDPPort(e.Remote.Port())}
	ip := &layers.IPv4{Protocol: layers.IPProtocolUDP, SrcIP: e.Local.Addr().AsSlice(), DstIP: e.Remote.Addr().AsSlice()}
	udp.SetNetworkLayerForChecksum(ip)
	p.add(ip, udp, gopacket.Payload(e.Data))
}

// tcpFlow writes the segments of one direction of a TCP connection.
type tcpFlow struct {
	file     *packetFile
	from, to netip.AddrPort
	seq, ack *uint32
}

// segment writes a segment with what was sent.
func (f *tcpFlow) segment(data []byte, syn, ack, fin bool) {
	tcp := &layers.TCP{SrcPort: layers.TCPPort(f.from.Port()), DstPort: layers.TCPPort(f.to.Port()), Seq: *f.seq, Ack: *f.ack,
		Window: 65535, SYN: syn, ACK: ack, FIN: fin, PSH: len(data) > 0}
	ip := &layers.IPv4{Protocol: layers.IPProtocolTCP, SrcIP: f.from.Addr().AsSlice(), DstIP: f.to.Addr().AsSlice()}
	tcp.SetNetworkLayerForChecksum(ip)
	f.file.add(ip, tcp, gopacket.Payload(data))
	*f.seq += uint32(len(data))
	if syn || fin {
		*f.seq++
	}
}

// tshark reads a file and returns the lines that tshark prints.
func tshark(t testing.TB, file string, args ...string) []string {
	t.Helper()
	path, err := exec.LookPath("tshark")
	if err != nil {
		testenv.Lacking(t, "tshark not found: install Debian's tshark")
	}
	read := []string{"-r", file, "-d", "udp.port==1024-65535,sctp", "-o", "sctp.checksum:crc-32c"}
	cmd := command(t, path, append(read, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark %q: %v\n%s", args, err, errs.String())
	}
	if strings.Contains(errs.String(), "Lua") || strings.Contains(errs.String(), "lua") {
		t.Fatalf("tshark %q: %s", args, errs.String())
	}
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
}
