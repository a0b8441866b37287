package testenv

import (
	"fmt"
	"net"
	"testing"
)

// No port is handed out twice, and none is one that the system gives away.
func TestFreePort(t *testing.T) {
	seen := make(map[int]bool)
	for range 200 {
		p := FreePort(t)
		if seen[p] || p < firstPort || p >= dynamicPorts() {
			t.Fatalf("port %d, again: %v", p, seen[p])
		}
		seen[p] = true
	}
}

// A port that UDP or TCP has in use is passed over.
func TestFreePortIsFree(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		var held interface{ Close() error }
		used := 0
		for held == nil {
			used = FreePort(t) + 1
			var err error
			if addr := fmt.Sprintf("127.0.0.1:%d", used); network == "udp" {
				held, err = net.ListenPacket(network, addr)
			} else {
				held, err = net.Listen(network, addr)
			}
			if err != nil {
				held = nil // somebody has it
			}
		}
		if usable(used) {
			t.Errorf("port %d counts as free, but %s has it", used, network)
		}
		if p := FreePort(t); p == used {
			t.Errorf("%s port %d is not free", network, p)
		}
		held.Close()
	}
}
