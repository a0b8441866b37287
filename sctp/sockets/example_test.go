package sockets_test

import (
	"fmt"
	"log"

	sctp "github.com/weftstack/weft/sctp/sockets"
)

// A server and a client as they are written for the kernel's socket: only the import line
// differs. The PPID is in network byte order on a little-endian machine, as of NGAP.
func Example() {
	laddr, err := sctp.ResolveSCTPAddr("sctp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ln, err := sctp.ListenSCTP("sctp", laddr)
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	go func() {
		conn, err := ln.AcceptSCTP()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.SubscribeEvents(sctp.SCTP_EVENT_DATA_IO)
		buf := make([]byte, 1<<16)
		for {
			n, info, err := conn.SCTPRead(buf)
			if err != nil {
				return
			}
			conn.SCTPWrite(buf[:n], info) // on the same stream, with the same PPID
		}
	}()

	conn, err := sctp.DialSCTPExt("sctp", nil, ln.Addr().(*sctp.SCTPAddr), sctp.InitMsg{NumOstreams: 2, MaxInstreams: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	conn.SubscribeEvents(sctp.SCTP_EVENT_DATA_IO)
	conn.SCTPWrite([]byte("NGSetupRequest"), &sctp.SndRcvInfo{Stream: 1, PPID: 0x3c000000})
	buf := make([]byte, 1<<16)
	n, info, err := conn.SCTPRead(buf)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s on stream %d, PPID %#x\n", buf[:n], info.Stream, info.PPID)
	// Output: NGSetupRequest on stream 1, PPID 0x3c000000
}

// One socket for many associations.
func ExampleListenOneToMany() {
	cfg := &sctp.SocketConfig{
		PPID:   sctp.PPIDHost,
		Events: sctp.SCTP_EVENT_ASSOCIATION | sctp.SCTP_EVENT_DATA_IO,
	}
	laddr, _ := sctp.ResolveSCTPAddr("sctp", "127.0.0.1:0")
	hub, err := cfg.ListenOneToMany("sctp", laddr)
	if err != nil {
		log.Fatal(err)
	}
	defer hub.Close()
	conn, err := cfg.Dial("sctp", nil, hub.LocalAddr().(*sctp.SCTPAddr))
	if err != nil {
		log.Fatal(err)
	}
	conn.SCTPWrite([]byte("DATA"), &sctp.SndRcvInfo{PPID: 3})

	buf := make([]byte, 1<<16)
	var info sctp.SndRcvInfo
	for {
		n, flags, err := hub.ReadMsg(buf, &info)
		if err != nil {
			log.Fatal(err)
		}
		if flags&sctp.MSG_NOTIFICATION == 0 {
			fmt.Printf("%s, protocol %d\n", buf[:n], info.PPID)
			conn.Close()
			continue
		}
		note, err := sctp.ParseNotification(buf[:n])
		if err != nil {
			log.Fatal(err)
		}
		if change, ok := note.(*sctp.AssocChange); ok && change.State == sctp.SCTP_COMM_UP {
			fmt.Println("an association is up")
		} else if ok {
			fmt.Println("it has ended")
			return
		}
	}
	// Output:
	// an association is up
	// DATA, protocol 3
	// it has ended
}
