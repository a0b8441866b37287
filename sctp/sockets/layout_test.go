package sockets

import (
	"net/netip"
	"reflect"
	"testing"
	"unsafe"
)

// The layout of each notification, read back, is what was written; lengths are those of the
// structures of Linux.
func TestNotificationLayout(t *testing.T) {
	if n := unsafe.Sizeof(SndRcvInfo{}); n != sndRcvInfoLen || len(new(SndRcvInfo).append(nil)) != sndRcvInfoLen {
		t.Errorf("SndRcvInfo has %d bytes, want %d", n, sndRcvInfoLen)
	}
	for _, tt := range []struct {
		n   Notification
		len int
	}{
		{&AssocChange{1, SCTP_COMM_LOST, 12, 3, 4}, 20},
		{&PeerAddrChange{2, netip.MustParseAddr("10.1.2.3"), 38412, SCTP_ADDR_CONFIRMED, 5}, 148},
		{&PeerAddrChange{2, netip.MustParseAddr("fe80::1%7"), 9, SCTP_ADDR_ADDED, 0}, 148},
		{&RemoteError{3, 0x0102}, 16},
		{&SendFailed{4, SCTP_DATA_SENT, 9, SndRcvInfo{Stream: 1, PPID: 2, Context: 3, TTL: 4, TSN: 5, CumTSN: 6, AssocID: 7, SSN: 8, Flags: 9}, []byte("data")}, 52},
		{&ShutdownEvent{5}, 12},
		{&PartialDelivery{6, 0, 7, 8}, 24},
		{&Adaptation{7, 0x01020304}, 16},
		{&SenderDry{8}, 12},
	} {
		b := tt.n.append(nil)
		if len(b) != tt.len || len(b) < tt.n.fixed() || native.Uint16(b) != uint16(tt.n.Type()) || native.Uint32(b[4:]) != uint32(tt.len) {
			t.Errorf("%T: % x, want %d bytes", tt.n, b, tt.len)
		}
		got, err := ParseNotification(b)
		if err != nil || !reflect.DeepEqual(got, tt.n) {
			t.Errorf("%+v read back as %+v, %v", tt.n, got, err)
		}
		for cut := range b { // a notification that did not fit the buffer
			if n, err := ParseNotification(b[:cut]); err == nil {
				t.Fatalf("%T of %d bytes instead of %d: %+v", tt.n, cut, len(b), n)
			}
		}
	}
}

// Words of the environment, and what sockets make of them.
func TestEnvironment(t *testing.T) {
	defer readEnv("", "")
	for _, tt := range []struct {
		encap, ppid string
		want        Encap
		order       PPIDOrder
		ok          bool
	}{
		{"", "", EncapSamePort, PPIDNetwork, true},
		{"same", "network", EncapSamePort, PPIDNetwork, true},
		{"ip", "host", EncapIP, PPIDHost, true},
		{"9899", "", 9899, PPIDNetwork, true},
		{"0", "", 0, 0, false}, {"70000", "", 0, 0, false}, {"udp", "", 0, 0, false}, {"", "big", 0, 0, false},
	} {
		err := readEnv(tt.encap, tt.ppid)
		if (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		if !tt.ok {
			continue
		}
		set, err := new(SocketConfig).check("sctp")
		if err != nil || set.Encap != tt.want || set.PPID != tt.order {
			t.Errorf("%+v: %v %v, error %v", tt, set.Encap, set.PPID, err)
		}
	}
	if PPIDNetwork.swap(PPIDNetwork.swap(0x01020304)) != 0x01020304 || PPIDHost.swap(60) != 60 {
		t.Error("PPIDs change on the way there and back")
	}
	var b [4]byte
	native.PutUint32(b[:], PPIDNetwork.swap(60))
	if b != [4]byte{0, 0, 0, 60} {
		t.Errorf("PPID 60 in network order is % x", b)
	}
	if err := SetDefaultEncap(70000); err == nil {
		t.Error("encapsulation 70000 accepted")
	}
	if err := SetDefaultPPIDOrder(9); err == nil {
		t.Error("PPID order 9 accepted")
	}
}

// Whatever is read as a notification is one that can be written, and read again.
func FuzzParseNotification(f *testing.F) {
	for _, n := range []Notification{
		&AssocChange{}, &PeerAddrChange{Addr: netip.IPv6Loopback()}, &RemoteError{}, &SendFailed{Data: []byte("x")},
		&ShutdownEvent{}, &PartialDelivery{}, &Adaptation{}, &SenderDry{},
	} {
		f.Add(n.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ParseNotification(b)
		if err != nil {
			return
		}
		again, err := ParseNotification(n.append(nil))
		if err != nil || !reflect.DeepEqual(again, n) {
			t.Fatalf("%+v read back as %+v, %v", n, again, err)
		}
	})
}
