package netem

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// datagram returns a UDP packet, with its checksums by gopacket.
func datagram(t testing.TB, port, id int, payload []byte) []byte {
	t.Helper()
	ip := testIP(layers.IPProtocolUDP, id)
	udp := &layers.UDP{SrcPort: layers.UDPPort(port), DstPort: 9899}
	udp.SetNetworkLayerForChecksum(ip)
	return serialize(t, ip, udp, gopacket.Payload(payload))
}

// segment returns a TCP packet, with its checksums by gopacket.
func segment(t testing.TB, id int, seq uint32, change func(*layers.IPv4, *layers.TCP), payload []byte) []byte {
	t.Helper()
	ip := testIP(layers.IPProtocolTCP, id)
	tcp := &layers.TCP{
		SrcPort: 5000, DstPort: 80, Seq: seq, Ack: 77, ACK: true, Window: 1000,
		Options: []layers.TCPOption{{OptionType: layers.TCPOptionKindTimestamps, OptionLength: 10, OptionData: []byte{0, 0, 1, 2, 0, 0, 3, 4}}},
	}
	if change != nil {
		change(ip, tcp)
	}
	tcp.SetNetworkLayerForChecksum(ip)
	return serialize(t, ip, tcp, gopacket.Payload(payload))
}

func testIP(proto layers.IPProtocol, id int) *layers.IPv4 {
	return &layers.IPv4{
		Version: 4, TTL: 64, Id: uint16(id), Flags: layers.IPv4DontFragment, Protocol: proto,
		SrcIP: net.IPv4(10, 77, 0, 1), DstIP: net.IPv4(10, 77, 0, 2),
	}
}

func serialize(t testing.TB, l ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(b.Bytes())
}

// numbers returns n bytes that differ from their neighbours.
func numbers(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 >> 2)
	}
	return b
}

// vnet puts the header before a packet that is a GSO batch, with what hosts leave to the
// card undone.
func vnet(kind byte, size int, pkt []byte) []byte {
	f := append(make([]byte, OffloadHeader), pkt...)
	p := f[OffloadHeader:]
	ip := int(p[0]&0xf) * 4
	field := checksumField(p)
	binary.BigEndian.PutUint16(p[ip+field:], pseudoSum(p, ip))
	f[0], f[1] = vnetNeedsChecksum, kind
	binary.NativeEndian.PutUint16(f[4:], uint16(size))
	binary.NativeEndian.PutUint16(f[6:], uint16(ip))
	binary.NativeEndian.PutUint16(f[8:], uint16(field))
	return f
}

// split returns the packets of a frame.
func split(t testing.TB, frame []byte) (pkts [][]byte) {
	t.Helper()
	if !Split(slices.Clone(frame), func(pkt []byte) { pkts = append(pkts, slices.Clone(pkt)) }) {
		t.Errorf("a frame is malformed: % x", frame[:min(len(frame), 64)])
	}
	return pkts
}

func samePackets(t *testing.T, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d packets, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("packet %d is\n% x, want\n% x", i, got[i][:min(len(got[i]), 60)], want[i][:min(len(want[i]), 60)])
		}
	}
}

func TestSplitDatagrams(t *testing.T) {
	for _, n := range []int{1, 999, 1000, 1001, 5000, 5001, 65000} {
		payload := numbers(n)
		var want [][]byte
		for part := range slices.Chunk(payload, 1000) {
			want = append(want, datagram(t, 7, 65530+len(want), part)) // the identification wraps
		}
		samePackets(t, split(t, vnet(vnetUDP, 1000, datagram(t, 7, 65530, payload))), want)
	}
}

func TestSplitSegments(t *testing.T) {
	const first uint32 = 0xfffffa00 // the sequence number wraps
	ends := func(_ *layers.IPv4, tcp *layers.TCP) { tcp.PSH, tcp.FIN, tcp.CWR = true, true, true }
	for _, n := range []int{1, 1448, 1449, 4344, 5000} {
		payload := numbers(n)
		var want [][]byte
		for part := range slices.Chunk(payload, 1448) {
			i := len(want)
			want = append(want, segment(t, 9+i, first+uint32(i*1448), func(_ *layers.IPv4, tcp *layers.TCP) {
				tcp.CWR = i == 0
				tcp.PSH = i == (n-1)/1448
				tcp.FIN = tcp.PSH
			}, part))
		}
		samePackets(t, split(t, vnet(vnetTCP4|vnetECN, 1448, segment(t, 9, first, ends, payload))), want)
	}
}

// What is no batch passes as it is but for the checksum that the host left out.
func TestSplitPassesOthers(t *testing.T) {
	whole := datagram(t, 7, 1, numbers(100))
	samePackets(t, split(t, append(make([]byte, OffloadHeader), whole...)), [][]byte{whole})
	samePackets(t, split(t, vnet(vnetWhole, 0, whole)), [][]byte{whole})
	six := append(make([]byte, OffloadHeader), 0x60, 1, 2)
	six[1] = vnetUDP
	samePackets(t, split(t, six), [][]byte{{0x60, 1, 2}})
}

func TestSplitRefusesMalformedFrames(t *testing.T) {
	udp, tcp := vnet(vnetUDP, 10, datagram(t, 7, 1, numbers(100))), vnet(vnetTCP4, 10, segment(t, 1, 1, nil, numbers(100)))
	change := func(f []byte, at int, to byte) []byte {
		f = slices.Clone(f)
		f[at] = to
		return f
	}
	for name, f := range map[string][]byte{
		"empty":            nil,
		"short":            udp[:OffloadHeader-1],
		"half an address":  udp[:OffloadHeader+18],
		"no payload":       udp[:OffloadHeader+28],
		"no segment":       change(change(udp, 4, 0), 5, 0),
		"short IP header":  change(udp, OffloadHeader, 0x44),
		"long IP header":   change(udp[:OffloadHeader+50], OffloadHeader, 0x4f),
		"UDP as TCP":       change(udp, 1, vnetTCP4),
		"TCP as UDP":       change(tcp, 1, vnetUDP),
		"UFO":              change(udp, 1, 3),
		"short TCP header": change(tcp, OffloadHeader+32, 0x40),
		"long TCP header":  change(tcp[:OffloadHeader+70], OffloadHeader+32, 0xf0),
		"checksum outside": change(change(udp, 1, vnetWhole), 6, 200),
	} {
		if Split(f, func(pkt []byte) { t.Errorf("%s: % x", name, pkt) }) {
			t.Errorf("%s: passed", name)
		}
	}
}

// joined returns the frames that come of packets to one host.
func joined(udp bool, pkts ...[]byte) (frames [][]byte) {
	j := NewJoiner(udp, func(_ int, frame []byte, _ int) { frames = append(frames, slices.Clone(frame)) })
	for _, p := range pkts {
		j.Add(0, p)
	}
	j.Flush()
	return frames
}

func TestJoinDatagrams(t *testing.T) {
	a := [][]byte{datagram(t, 1, 1, numbers(1000)), datagram(t, 1, 2, numbers(1000)), datagram(t, 1, 3, numbers(700))}
	b := [][]byte{datagram(t, 2, 1, numbers(900)), datagram(t, 2, 2, numbers(900))}
	frames := joined(true, a[0], b[0], a[1], a[2], b[1], a[0])
	if len(frames) != 3 {
		t.Fatalf("%d frames, want two batches, and one that follows a shorter packet", len(frames))
	}
	samePackets(t, split(t, frames[0]), a)
	samePackets(t, split(t, frames[1]), b)
	samePackets(t, split(t, frames[2]), a[:1])
	if want := vnet(vnetUDP, 900, datagram(t, 2, 1, slices.Concat(numbers(900), numbers(900)))); !bytes.Equal(frames[1][4:], want[4:]) ||
		!bytes.Equal(frames[1][:2], want[:2]) || binary.NativeEndian.Uint16(frames[1][2:]) != 28 {
		t.Errorf("a batch is\n% x, want\n% x", frames[1][:60], want[:60])
	}
	if n := len(joined(true, b[0], a[0])) + len(joined(true, datagram(t, 1, 1, numbers(999)), a[0], a[1])); n != 4 {
		t.Errorf("%d frames of two flows, and of one whose packets get longer", n)
	}
	if n := len(joined(false, a...)); n != 3 {
		t.Errorf("datagrams were joined unasked: %d frames", n)
	}
}

func TestJoinSegments(t *testing.T) {
	push := func(_ *layers.IPv4, tcp *layers.TCP) { tcp.PSH = true }
	pkts := [][]byte{
		segment(t, 1, 1000, nil, numbers(1448)), segment(t, 2, 2448, nil, numbers(1448)), segment(t, 3, 3896, push, numbers(1448)),
		segment(t, 4, 5344, nil, numbers(1448)), segment(t, 5, 6792, nil, numbers(10)),
	}
	frames := joined(false, pkts...)
	if len(frames) != 2 {
		t.Fatalf("%d frames, want 2: PSH ends one", len(frames))
	}
	samePackets(t, split(t, frames[0]), pkts[:3])
	samePackets(t, split(t, frames[1]), pkts[3:])
}

// Each of these stays a packet by itself, as it came, and what comes behind it in its
// flow does not overtake it.
func TestJoinLeavesOthersAlone(t *testing.T) {
	change := func(at int, to byte) []byte {
		p := datagram(t, 1, 2, numbers(1000))
		p[at] = to
		return p
	}
	first, last := datagram(t, 1, 1, numbers(1000)), datagram(t, 1, 3, numbers(1000))
	tos := testIP(layers.IPProtocolUDP, 2)
	tos.TOS = 4
	udp := &layers.UDP{SrcPort: 1, DstPort: 9899}
	udp.SetNetworkLayerForChecksum(tos)
	for name, odd := range map[string][]byte{
		"corrupt":         change(500, 0xff),
		"corrupt header":  change(8, 63),
		"a fragment":      change(7, 100),
		"more fragments":  change(6, 0x20),
		"options":         append([]byte{0x46}, first[1:]...),
		"other length":    append(slices.Clone(first), 0),
		"empty":           datagram(t, 1, 2, nil),
		"type of service": serialize(t, tos, udp, gopacket.Payload(numbers(1000))),
		"short":           first[:27],
		"ICMP":            change(9, 1),
		"IPv6":            change(0, 0x65),
	} {
		frames := joined(true, first, odd, last)
		if len(frames) != 3 || !bytes.Equal(frames[1][OffloadHeader:], odd) || !bytes.Equal(frames[1][:OffloadHeader], make([]byte, OffloadHeader)) {
			t.Errorf("%s: %d frames", name, len(frames))
		}
	}
	plain := segment(t, 1, 1000, nil, numbers(1000))
	for name, set := range map[string]func(*layers.IPv4, *layers.TCP){
		"gap":       func(_ *layers.IPv4, tcp *layers.TCP) { tcp.Seq++ },
		"window":    func(_ *layers.IPv4, tcp *layers.TCP) { tcp.Window++ },
		"ack":       func(_ *layers.IPv4, tcp *layers.TCP) { tcp.Ack++ },
		"option":    func(_ *layers.IPv4, tcp *layers.TCP) { tcp.Options[0].OptionData[0] = 9 },
		"no option": func(_ *layers.IPv4, tcp *layers.TCP) { tcp.Options = nil },
		"SYN":       func(_ *layers.IPv4, tcp *layers.TCP) { tcp.SYN = true },
		"CWR":       func(_ *layers.IPv4, tcp *layers.TCP) { tcp.CWR = true },
		"URG":       func(_ *layers.IPv4, tcp *layers.TCP) { tcp.URG = true },
		"TTL":       func(ip *layers.IPv4, _ *layers.TCP) { ip.TTL-- },
		"DF":        func(ip *layers.IPv4, _ *layers.TCP) { ip.Flags = 0 },
	} {
		if n := len(joined(true, plain, segment(t, 2, 2000, set, numbers(1000)))); n != 2 {
			t.Errorf("%s: %d frames", name, n)
		}
	}
	if n := len(joined(true, plain, segment(t, 2, 2000, nil, nil))); n != 2 {
		t.Errorf("an acknowledgement: %d frames", n)
	}
	if n := len(joined(true, plain, segment(t, 2, 2000, nil, numbers(1000)))); n != 1 {
		t.Errorf("what follows: %d frames", n)
	}
}

func TestJoinLimits(t *testing.T) {
	small := datagram(t, 1, 1, numbers(10))
	frames := joined(true, slices.Repeat([][]byte{small}, maxBatchPackets+1)...)
	if len(frames) != 2 || len(split(t, frames[0])) != maxBatchPackets {
		t.Errorf("%d frames of small packets", len(frames))
	}
	long := datagram(t, 1, 1, numbers(20000))
	frames = joined(true, long, long, long, long)
	if len(frames) != 2 || len(split(t, frames[0])) != 3 || len(frames[0]) > OffloadHeader+MaxPacket {
		t.Errorf("%d frames of long packets", len(frames))
	}
	written := 0
	j := NewJoiner(true, func(_ int, _ []byte, packets int) { written += packets })
	for i := range maxPending + 1 {
		j.Add(i, small)
	}
	if written != maxPending {
		t.Errorf("%d packets were written when there were %d batches", written, maxPending+1)
	}
	if j.Flush(); written != maxPending+1 {
		t.Errorf("%d packets at the end", written)
	}
}

// Whatever is joined comes out of Split as it went in, in the order of its flow.
func TestJoinAndSplit(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	type key struct{ to, flow int }
	sent, got := map[key][][]byte{}, map[key][][]byte{}
	flowOf := func(pkt []byte) int { return int(binary.BigEndian.Uint16(pkt[20:])) }
	frames := 0
	j := NewJoiner(true, func(to int, frame []byte, packets int) {
		frames++
		pkts := split(t, frame)
		if len(pkts) != packets {
			t.Fatalf("%d packets in a frame of %d", len(pkts), packets)
		}
		for _, p := range pkts {
			k := key{to, flowOf(p)}
			got[k] = append(got[k], p)
		}
	})
	seq, ids := map[key]uint32{}, map[key]int{}
	const count = 5000
	for range count {
		to, n := rng.IntN(3), []int{0, 1, 700, 1440, 1440, 1440, 1440, 1440}[rng.IntN(8)]
		var p []byte
		k := key{to, 1 + rng.IntN(3)}
		if rng.IntN(2) == 0 {
			p = datagram(t, k.flow, ids[k], numbers(n))
		} else {
			k.flow = 5000
			p = segment(t, ids[k], seq[k], func(_ *layers.IPv4, tcp *layers.TCP) { tcp.PSH = rng.IntN(5) == 0 }, numbers(n))
			seq[k] += uint32(n)
		}
		ids[k]++
		if rng.IntN(20) == 0 {
			p[28+rng.IntN(len(p)-27)-1] ^= 4
		}
		sent[k] = append(sent[k], p)
		if j.Add(to, p); rng.IntN(40) == 0 {
			j.Flush()
		}
	}
	j.Flush()
	for k, want := range sent {
		samePackets(t, got[k], want)
	}
	t.Logf("%d packets in %d frames", count, frames)
	if frames > count*3/4 {
		t.Errorf("%d packets took %d frames", count, frames)
	}
}

func TestOffloadAllocatesNothing(t *testing.T) {
	frame := vnet(vnetUDP, 1000, datagram(t, 7, 1, numbers(20000)))
	j := NewJoiner(true, func(int, []byte, int) {})
	add := func(pkt []byte) { j.Add(0, pkt) }
	buf := make([]byte, len(frame))
	if n := testing.AllocsPerRun(100, func() {
		Split(buf[:copy(buf, frame)], add)
		j.Flush()
	}); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
}

func TestOnesSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32()) | byte(-(n & 1)) // all ones at odd lengths
		}
		want := uint64(n)
		for i, v := range b {
			want += uint64(v) << (8 * (1 - i&1))
		}
		for want > 0xffff {
			want = want>>16 + want&0xffff
		}
		if got := onesSum(uint64(n), b); uint64(got) != want {
			t.Errorf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(vnet(vnetUDP, 100, datagram(f, 7, 1, numbers(1000))))
	f.Add(vnet(vnetTCP4, 100, segment(f, 1, 1, nil, numbers(1000))))
	f.Add(vnet(vnetWhole, 0, datagram(f, 7, 1, numbers(10))))
	f.Fuzz(func(t *testing.T, frame []byte) {
		limit := len(frame) // of packets
		Split(slices.Clone(frame), func(pkt []byte) {
			if limit--; limit < 0 || len(pkt) > len(frame)-OffloadHeader {
				t.Fatal("more came out than went in")
			}
			if _, flow := flowHeader(pkt); flow && frame[1]&^vnetECN != vnetWhole && pkt[0]>>4 == 4 && onesSum(0, pkt[:ipHeader]) != 0xffff && limit < len(frame)-2 {
				t.Fatal("the header of a packet does not add up")
			}
		})
	})
}

func FuzzJoiner(f *testing.F) {
	f.Add(datagram(f, 7, 1, numbers(100)), datagram(f, 7, 2, numbers(90)))
	f.Add(segment(f, 1, 1, nil, numbers(100)), segment(f, 2, 101, nil, numbers(100)))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a) > MaxPacket || len(b) > MaxPacket {
			return
		}
		var payload []byte
		packets := 0
		for _, frame := range joined(true, a, b) {
			for _, p := range split(t, frame) {
				packets++
				payload = append(payload, p[min(len(p), 40):]...)
			}
		}
		if want := slices.Concat(a[min(len(a), 40):], b[min(len(b), 40):]); packets != 2 || !bytes.Equal(payload, want) {
			t.Fatalf("%d packets came out of 2", packets)
		}
	})
}

// A host that sends two datagrams at once may leave it to its network card to cut them
// apart, and to the receiver's to put them together again.
func ExampleJoiner() {
	j := NewJoiner(true, func(to int, frame []byte, packets int) {
		fmt.Println(packets, "packets to host", to)
		Split(frame, func(pkt []byte) { fmt.Println(len(pkt), "bytes") })
	})
	var t testing.T
	j.Add(1, datagram(&t, 7, 1, numbers(1000)))
	j.Add(1, datagram(&t, 7, 2, numbers(500)))
	j.Flush()
	// Output:
	// 2 packets to host 1
	// 1028 bytes
	// 528 bytes
}

// One packet of a batch of 20, cut out and joined again.
func BenchmarkOffload(b *testing.B) {
	frame := vnet(vnetUDP, 1452, datagram(b, 7, 1, numbers(20*1452)))
	j := NewJoiner(true, func(int, []byte, int) {})
	add := func(pkt []byte) { j.Add(0, pkt) }
	buf := make([]byte, len(frame))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%20 == 0 {
			Split(buf[:copy(buf, frame)], add)
			j.Flush()
		}
	}
}
