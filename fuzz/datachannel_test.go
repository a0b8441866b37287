package fuzz

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
	"github.com/weftstack/weft/sctp/datachannel/dcep"
	"github.com/weftstack/weft/sctp/sctptest"
)

// FuzzDataChannelPeer plays a script of what a hostile peer sends on an association with data channels:
// messages with any payload protocol identifier on any of eight streams, among them valid openings and
// acknowledgements, resets, and pauses. The session must survive, bounded, and serve a new channel.
func FuzzDataChannelPeer(f *testing.F) {
	f.Add([]byte{0, 2, 0, 0, 4, 1, 1, 2, 0, 2, 2, 0, 3, 0, 0})
	f.Add([]byte{0, 1, 0, 1, 1, 0, 4, 3, 9, 2, 1, 0, 0, 1, 0, 5, 0, 0})
	f.Add([]byte{5, 0, 0, 1, 1, 0, 1, 1, 0, 4, 1, 50, 3, 0, 9, 2, 1, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		synctest.Test(t, func(t *testing.T) { playDataChannelPeer(t, script[:min(len(script), 300)]) })
	})
}

func playDataChannelPeer(t *testing.T, script []byte) {
	network := sctptest.NewNetwork(1)
	defer time.Sleep(time.Second) // transports end by themselves, and may wait for a last packet
	defer network.Close()
	link := sctptest.Link{Delay: time.Millisecond}
	peerConn, conn := network.NewConns(link, link)
	const maxMessage = 3000
	session := make(chan *datachannel.Session)
	go func(conn net.Conn) {
		s, err := datachannel.Connect(t.Context(), conn, datachannel.Config{Role: datachannel.Server, MaxMessageSize: maxMessage, MaxChannels: 3}, nil)
		if err != nil {
			panic(err)
		}
		session <- s
	}(conn)
	peer, err := sctp.Client(t.Context(), peerConn, &sctp.ConnConfig{Config: &sctp.Config{OutStreams: 8, InStreams: 8}})
	if err != nil {
		t.Fatal(err)
	}
	s := <-session
	open, _ := dcep.AppendOpen(nil, &dcep.Open{Label: []byte("label")})
	send := func(stream uint16, ppid uint32, data []byte, unordered bool) {
		if err := peer.Send(t.Context(), data, sctp.SendOptions{Stream: stream, PPID: ppid, Unordered: unordered}); err != nil {
			t.Fatal(err)
		}
	}
	for ; len(script) >= 3; script = script[3:] {
		stream, arg := uint16(script[1]%8), script[2]
		switch script[0] % 6 {
		case 0:
			send(stream, 50, open, false)
		case 1:
			send(stream, 50, []byte{2}, false)
		case 2:
			if err := peer.ResetStreams(t.Context(), stream); err != nil {
				t.Fatal(err)
			}
		case 3:
			time.Sleep(time.Duration(arg) * time.Millisecond)
		case 4:
			send(stream, 50+uint32(arg%9), slices.Concat(open[:1+int(arg)%len(open)], make([]byte, int(arg)*16)), arg&1 != 0)
		case 5:
			_, _ = s.Open(t.Context(), "of the session", datachannel.Options{})
		}
	}
	time.Sleep(5 * time.Second)
	if st := s.Stats(); st.AssemblyBytes != 0 || st.Channels > 3+4 {
		t.Errorf("%+v", st)
	}
	if err := peer.ResetStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	if st := s.Stats(); st.Channels != 0 {
		t.Errorf("%d channels after a reset of all streams", st.Channels)
	}
	send(6, 50, open, false)
	send(6, 51, []byte("served"), false)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		c, err := s.Accept(ctx)
		if err != nil {
			t.Fatalf("the last channel was not accepted: %v; %+v", err, s.Stats())
		}
		if m, err := c.Recv(ctx, nil); err == nil && string(m.Data) == "served" {
			break
		}
	}
	s.Association().Abort("done")
	<-peer.Done()
	<-s.Done()
}
