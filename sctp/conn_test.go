package sctp_test

import (
	"context"
	"net"
	"testing"

	"github.com/weftstack/weft/sctp"
	"golang.org/x/net/nettest"
)

func TestConnConformsToNet(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		l, err := sctp.Listen("127.0.0.1:0")
		if err != nil {
			return nil, nil, nil, err
		}
		if got, want := l.Endpoint().Addr().String(), l.Addr().String(); got != want {
			t.Errorf("the endpoint of the listener has the address %s, want %s", got, want)
		}
		type result struct {
			c   net.Conn
			err error
		}
		accepted := make(chan result, 1)
		go func() {
			c, err := l.Accept()
			accepted <- result{c, err}
		}()
		c1, err = sctp.Dial(context.Background(), l.Addr().String())
		if err != nil {
			l.Close()
			return nil, nil, nil, err
		}
		r := <-accepted
		if r.err != nil {
			return nil, nil, nil, r.err
		}
		return c1, r.c, func() {
			c1.Close()
			r.c.Close()
			l.Close()
		}, nil
	})
}
