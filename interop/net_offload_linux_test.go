package interop

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"golang.org/x/sys/unix"
)

// Roles of this test binary on two hosts: envBatch sends a GSO batch of datagrams from host
// 0 to host 1, envStream a stream of TCP.
const (
	envBatch  = "WEFT_INTEROP_BATCH"
	envStream = "WEFT_INTEROP_STREAM"
)

func init() {
	first := os.Getenv("WEFT_NET_HOST") == "0"
	playRole(envBatch, func(string) error {
		if first {
			return sendBatch()
		}
		return receiveBatches()
	})
	playRole(envStream, func(string) error { return stream(first) })
}

// What a batch is made of.
const (
	batchPackets = 10
	batchPacket  = 1000
	// batchTries is how many batches are sent until one arrives whole: while the machine is
	// busy the network may get one in pieces, and pass it on so.
	batchTries = 10
)

var batchAddr = &net.UDPAddr{IP: net.IPv4(10, 77, 0, 2), Port: 7777}

// setUDP sets an option of UDP.
func setUDP(c *net.UDPConn, option, value int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, option, value) })
	return errors.Join(err, controlErr)
}

// sendBatch prints how many bytes of one of its batches the system of host 1 handed over
// together at most, and of how many each packet was said to be.
func sendBatch() error {
	c, err := net.DialUDP("udp4", nil, batchAddr)
	if err != nil {
		return err
	}
	if err := setUDP(c, unix.UDP_SEGMENT, batchPacket); err != nil {
		return err
	}
	payload := bytes.Repeat([]byte("weft"), batchPackets*batchPacket/4)
	best, answer := 0, ""
	for tries, deadline := 0, time.Now().Add(patience); tries < batchTries && best < len(payload); {
		c.Write(payload)
		switch size, a, err := largestPiece(c, len(payload)); {
		case size > best:
			best, answer = size, a
			fallthrough
		case size > 0:
			tries++
		case time.Now().After(deadline):
			return err
		}
	}
	fmt.Println(answer)
	return nil
}

// largestPiece returns the answer that tells of the largest piece of what was sent, and
// its size: it waits until one tells of enough, or none comes for a while. The size is 0
// if none came at all.
func largestPiece(c *net.UDPConn, enough int) (size int, answer string, err error) {
	buf := make([]byte, 100)
	for size < enough {
		c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		n, err := c.Read(buf)
		if err != nil {
			return size, answer, err
		}
		var got int
		if _, err := fmt.Sscan(string(buf[:n]), &got); err != nil {
			return size, answer, err
		}
		if got > size {
			size, answer = got, string(buf[:n])
		}
	}
	return size, answer, nil
}

// receiveBatches answers with how much came together, and how long each packet was.
func receiveBatches() error {
	c, err := net.ListenUDP("udp4", batchAddr)
	if err != nil {
		return err
	}
	if err := setUDP(c, unix.UDP_GRO, 1); err != nil {
		return err
	}
	buf, control := make([]byte, 65536), make([]byte, 64)
	for {
		n, m, _, from, err := c.ReadMsgUDPAddrPort(buf, control)
		if err != nil {
			return err
		}
		segment := 0
		messages, err := unix.ParseSocketControlMessage(control[:m])
		if err != nil {
			return err
		}
		for _, msg := range messages {
			if msg.Header.Level == unix.IPPROTO_UDP && msg.Header.Type == unix.UDP_GRO {
				segment = int(msg.Data[0]) | int(msg.Data[1])<<8
			}
		}
		if !bytes.Equal(buf[:n], bytes.Repeat([]byte("weft"), n/4)) {
			return fmt.Errorf("%d bytes came damaged", n)
		}
		if _, err := c.WriteToUDPAddrPort(fmt.Appendf(nil, "%d %d", n, segment), from); err != nil {
			return err
		}
	}
}

// A GSO batch leaves a host in one piece, is a number of packets in the network, and reaches
// the other in one piece; or in pieces, without offload.
func TestNetCarriesBatches(t *testing.T) {
	bounded(t)
	testenv.Networks(t)
	var kernel unix.Utsname
	var major, minor int
	if err := unix.Uname(&kernel); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(kernel.Release[:]), "%d.%d", &major, &minor); err != nil || major < 6 || major == 6 && minor < 2 {
		testenv.Lacking(t, "batches of datagrams over TUN interfaces need Linux 6.2; this is %s", unix.ByteSliceToString(kernel.Release[:]))
	}
	for offload, want := range map[string]string{"true": "10000 1000\n", "false": "1000 0\n"} {
		out, errs, status := weft(t, "net", "-hosts", "2", "-main", "0", "-stats", "-x", envBatch+"=1", "-offload="+offload, "--", os.Args[0])
		if status != 0 {
			t.Fatalf("status %d: %s%s", status, out, errs)
		}
		if out != want {
			t.Errorf("-offload=%s: %q, want %q", offload, out, want)
		}
		var network, host, sent int
		_, counters, _ := strings.Cut(errs, "\n")
		if _, err := fmt.Sscan(counters, &network, &host, &sent); err != nil || sent < batchPackets {
			t.Errorf("-offload=%s: %d packets left host 0: %v", offload, sent, err)
		}
	}
}

// streamBytes is how much stream carries.
const streamBytes = 1 << 20

// stream sends bytes by TCP from host 1 to host 0, which prints whether they are right.
func stream(receiver bool) error {
	content := make([]byte, streamBytes)
	rand.NewChaCha8([32]byte{1}).Read(content)
	if !receiver {
		l, err := net.Listen("tcp4", "10.77.0.2:7777")
		if err != nil {
			return err
		}
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			go func() {
				c.Write(content)
				c.Close()
			}()
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp4", "10.77.0.2:7777", patience)
		if err != nil {
			if time.Now().After(deadline) {
				return err
			}
			continue
		}
		got, err := io.ReadAll(c)
		if err != nil {
			return err
		}
		fmt.Println(len(got), sha256.Sum256(got) == sha256.Sum256(content))
		return nil
	}
}

// Nothing that the network does to packets of a batch is seen above TCP.
func TestNetDamagesPacketsOfBatches(t *testing.T) {
	bounded(t)
	testenv.Networks(t)
	out, errs, status := weft(t, "net", "-hosts", "2", "-main", "0", "-stats", "-x", envStream+"=1", "-rate", "1gbit",
		"-corrupt", "2%", "-dup", "1%", "-loss", "0.5%", "-reorder", "1%", "--", os.Args[0])
	if want := fmt.Sprintln(streamBytes, true); status != 0 || out != want {
		t.Errorf("status %d, %q, want %q: %s", status, out, want, errs)
	}
}
