package sctp_test

import (
	"fmt"
	"log"
	"net"

	"github.com/pion/sctp"
)

// Two ends of a connection open an association, and one sends a message on a stream.
func Example() {
	near, far := net.Pipe() // in WebRTC, DTLS
	done := make(chan struct{})
	go func() {
		defer close(done)
		b, err := sctp.ServerWithOptions(sctp.WithNetConn(far))
		if err != nil {
			log.Fatal(err)
		}
		defer b.Close()
		s, err := b.AcceptStream()
		if err != nil {
			log.Fatal(err)
		}
		buf := make([]byte, 1024)
		n, ppid, err := s.ReadSCTP(buf)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("stream %d, %v: %s\n", s.StreamIdentifier(), ppid, buf[:n])
		if _, err := s.Write([]byte("and back")); err != nil {
			log.Fatal(err)
		}
		_, _ = s.Read(buf) // until the other side has gone
	}()

	a, err := sctp.ClientWithOptions(sctp.WithNetConn(near))
	if err != nil {
		log.Fatal(err)
	}
	s, err := a.OpenStream(7, sctp.PayloadTypeWebRTCString)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Write([]byte("there")); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 1024)
	n, err := s.Read(buf)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", buf[:n])
	a.Close()
	<-done
	// Output:
	// stream 7, WebRTC String: there
	// and back
}
