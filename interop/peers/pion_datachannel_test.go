package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	piondc "github.com/pion/datachannel"
	"github.com/pion/logging"
	pion "github.com/pion/sctp"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
)

// connectedUDPPair returns two UDP sockets of the loopback interface that are connected to each other.
func connectedUDPPair(t *testing.T) (a, b *net.UDPConn) {
	t.Helper()
	first, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	here := first.LocalAddr().(*net.UDPAddr)
	if b, err = net.DialUDP("udp4", nil, here); err != nil {
		t.Fatal(err)
	}
	first.Close()
	if a, err = net.DialUDP("udp4", here, b.LocalAddr().(*net.UDPAddr)); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// dataChannelPeers is a session of weft's and an association of pion's.
type dataChannelPeers struct {
	weft *datachannel.Session
	pion *pion.Association
	logs logging.LoggerFactory
}

// dataChannelTime is how long a test of data channels may take.
const dataChannelTime = time.Minute

func openDataChannelPeers(t *testing.T, ctx context.Context, role datachannel.Role) *dataChannelPeers {
	t.Helper()
	a, b := connectedUDPPair(t)
	p := &dataChannelPeers{logs: logging.NewDefaultLoggerFactory()}
	done := make(chan error, 1)
	go func() {
		var err error
		p.pion, err = pion.Client(pion.Config{NetConn: b, LoggerFactory: p.logs, EnableZeroChecksum: true, MaxMessageSize: 1 << 20})
		done <- err
	}()
	var err error
	p.weft, err = datachannel.Connect(ctx, a, datachannel.Config{Role: role, PeerMaxMessageSize: -1, MaxMessageSize: 1 << 20},
		&sctp.ConnConfig{Config: &sctp.Config{ZeroChecksum: true}})
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.pion.Close()
		p.weft.Association().Abort("")
	})
	stop := context.AfterFunc(ctx, func() { p.pion.Close() }) // its Read has no context
	t.Cleanup(func() { stop() })
	return p
}

// dataChannelKinds are the properties of channels in the words of both.
var dataChannelKinds = []struct {
	name string
	weft datachannel.Options
	pion piondc.ChannelType
	more uint32 // retransmissions or milliseconds
}{
	{"reliable", datachannel.Options{}, piondc.ChannelTypeReliable, 0},
	{"unordered", datachannel.Options{Unordered: true}, piondc.ChannelTypeReliableUnordered, 0},
	{"retransmits", datachannel.Options{PR: sctp.LimitedRetransmissions, MaxRetransmits: 7}, piondc.ChannelTypePartialReliableRexmit, 7},
	{"retransmits-unordered", datachannel.Options{PR: sctp.LimitedRetransmissions, MaxRetransmits: 5, Unordered: true}, piondc.ChannelTypePartialReliableRexmitUnordered, 5},
	{"lifetime", datachannel.Options{PR: sctp.Timed, Lifetime: 30 * time.Second}, piondc.ChannelTypePartialReliableTimed, 30_000},
	{"lifetime-unordered", datachannel.Options{PR: sctp.Timed, Lifetime: 20 * time.Second, Unordered: true}, piondc.ChannelTypePartialReliableTimedUnordered, 20_000},
}

// Channels that either side opens have the properties that it asks for, carry messages of all kinds both ways, and
// are closed by either side, after which their numbers can be used again.
func TestDataChannelsWithPion(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), dataChannelTime)
	defer cancel()
	for _, role := range []datachannel.Role{datachannel.Client, datachannel.Server} {
		p := openDataChannelPeers(t, ctx, role)
		for round := range 2 { // the second uses the numbers again
			for i, kind := range dataChannelKinds {
				for _, weftOpens := range []bool{true, false} {
					name := fmt.Sprintf("%v/%s/weftOpens=%v/round=%d", role, kind.name, weftOpens, round)
					label, protocol := "label of "+name, "protocol of "+name
					var w *datachannel.Channel
					var pc *piondc.DataChannel
					var err error
					if weftOpens {
						o := kind.weft
						o.Protocol, o.Priority = protocol, 512
						if w, err = p.weft.Open(ctx, label, o); err != nil {
							t.Fatalf("%s: %v", name, err)
						}
						if pc, err = piondc.Accept(p.pion, &piondc.Config{LoggerFactory: p.logs}); err != nil {
							t.Fatalf("%s: accept: %v", name, err)
						}
						if pc.ChannelType != kind.pion || pc.ReliabilityParameter != kind.more || pc.Priority != 512 || pc.Label != label || pc.Protocol != protocol {
							t.Errorf("%s: pion understood %+v", name, pc.Config)
						}
					} else {
						id := uint16(2*i + 1) // pion's numbers are those of the other role
						if role == datachannel.Server {
							id = uint16(2 * i)
						}
						if pc, err = piondc.Dial(p.pion, id, &piondc.Config{ChannelType: kind.pion, ReliabilityParameter: kind.more, Priority: 128,
							Label: label, Protocol: protocol, LoggerFactory: p.logs}); err != nil {
							t.Fatalf("%s: %v", name, err)
						}
						if w, err = p.weft.Accept(ctx); err != nil {
							t.Fatalf("%s: accept: %v", name, err)
						}
						o := kind.weft
						o.ID, o.Protocol, o.Priority = id, protocol, 128
						if got := w.Options(); got != o || w.Label() != label {
							t.Errorf("%s: weft understood %q, %+v, want %+v", name, w.Label(), got, o)
						}
					}
					exchangeOnChannel(t, ctx, name, w, pc)
					closeChannel(t, ctx, name, w, pc, (i+round)%2 == 0)
				}
			}
		}
	}
}

// exchangeOnChannel sends messages of all kinds both ways, one after the other, so that unordered ones have an order.
func exchangeOnChannel(t *testing.T, ctx context.Context, name string, w *datachannel.Channel, p *piondc.DataChannel) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for i, size := range []int{1, 0, 1000, 1201, 65536, 300_000} {
		msg := bytes.Repeat([]byte{byte('a' + i)}, size)
		text := i%2 == 0
		var err error
		if text {
			err = w.SendText(ctx, string(msg))
		} else {
			err = w.Send(ctx, msg)
		}
		if err != nil {
			t.Fatalf("%s: send %d bytes: %v", name, size, err)
		}
		if n, isString, err := p.ReadDataChannel(buf); err != nil || isString != text || !bytes.Equal(buf[:n], msg) {
			t.Fatalf("%s: pion read %d bytes, text %v, %v, want %d, %v", name, n, isString, err, size, text)
		}
		if err := w.WaitOpen(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := p.WriteDataChannel(msg, text); err != nil {
			t.Fatalf("%s: pion: send %d bytes: %v", name, size, err)
		}
		m, err := w.Recv(ctx, nil)
		if err != nil || (m.Kind == datachannel.Text) != text || !bytes.Equal(m.Data, msg) {
			t.Fatalf("%s: weft read %d bytes, %v, %v, want %d, text %v", name, len(m.Data), m.Kind, err, size, text)
		}
	}
}

// closeChannel closes a channel at one side, and has the other one close it, too.
func closeChannel(t *testing.T, ctx context.Context, name string, w *datachannel.Channel, p *piondc.DataChannel, weftCloses bool) {
	t.Helper()
	if weftCloses {
		w.Close()
		if n, err := p.Read(make([]byte, 100)); err != io.EOF {
			t.Fatalf("%s: pion read %d bytes, %v, want io.EOF", name, n, err)
		}
		if err := p.Close(); err != nil {
			t.Fatalf("%s: pion: close: %v", name, err)
		}
	} else {
		if err := p.Close(); err != nil {
			t.Fatalf("%s: pion: close: %v", name, err)
		}
		if m, err := w.Recv(ctx, nil); err != io.EOF {
			t.Fatalf("%s: weft read %d bytes, %v, want io.EOF", name, len(m.Data), err)
		}
		w.Close()
	}
	select {
	case <-w.Done():
	case <-ctx.Done():
		t.Fatalf("%s: the channel is %v: %v", name, w.State(), ctx.Err())
	}
	if err := w.Err(); err != nil {
		t.Errorf("%s: ended by %v", name, err)
	}
}
