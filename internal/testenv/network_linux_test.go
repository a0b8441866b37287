package testenv

import (
	"net"
	"testing"
)

// The goroutine is alone with loopback, and others stay where they were.
func TestOwnNetwork(t *testing.T) {
	for range 2 { // the second call changes nothing
		OwnNetwork(t)
		links, err := net.Interfaces()
		if err != nil || len(links) != 1 || links[0].Flags&net.FlagUp == 0 {
			t.Fatalf("%+v, %v", links, err)
		}
	}
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	elsewhere := make(chan error)
	go func() {
		d, err := net.ListenPacket("udp", c.LocalAddr().String())
		if err == nil {
			d.Close()
		}
		elsewhere <- err
	}()
	if err := <-elsewhere; err != nil {
		t.Errorf("the port is not free elsewhere: %v", err)
	}
}
