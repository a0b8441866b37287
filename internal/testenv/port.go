package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
)

// Ports that FreePort hands out are from here to what the system gives to those
// that do not care: another process that does not ask for one by number does not
// get it, however long its user takes to start.
const firstPort = 10000

var nextPort struct {
	sync.Mutex
	n int // the next one to try; guarded by Mutex
}

// FreePort returns a port that nobody uses on the loopback interface, neither of
// UDP nor of TCP, for a program that wants to be told one.
func FreePort(t testing.TB) int {
	t.Helper()
	limit := dynamicPorts()
	nextPort.Lock()
	defer nextPort.Unlock()
	for range limit - firstPort {
		if nextPort.n < firstPort || nextPort.n >= limit {
			// Where another process does not go on, most likely.
			nextPort.n = firstPort + rand.IntN(limit-firstPort)
		}
		port := nextPort.n
		nextPort.n++
		if usable(port) {
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func usable(port int) bool {
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	defer c.Close()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// dynamicPorts returns the first of the ports that the system gives away.
func dynamicPorts() int {
	n := 32768
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		fmt.Sscan(strings.TrimSpace(string(b)), &n)
	}
	if n < firstPort+1000 { // no ports are left for this
		return 49152
	}
	return n
}
