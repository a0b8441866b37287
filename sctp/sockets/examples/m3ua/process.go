package main

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	sctp "github.com/weftstack/weft/sctp/sockets"
)

// process is an application server process: it serves, and lives on, one association with a
// gateway.
type process struct {
	conn           *conn
	routingContext uint32
}

// patience bounds how long an answer may take.
const patience = 10 * time.Second

// dial opens the association and puts the process into service: ASP Up, ASP Active.
func dial(laddr, raddr *sctp.SCTPAddr, routingContext uint32, log *slog.Logger) (*process, error) {
	sc, err := sctp.DialSCTPExt("sctp", laddr, raddr, initMsg)
	if err != nil {
		return nil, err
	}
	c, err := newConn(sc, log)
	if err != nil {
		sc.Close()
		return nil, err
	}
	p := &process{c, routingContext}
	if err := p.activate(); err != nil {
		sc.Close()
		return nil, err
	}
	return p, nil
}

func (p *process) activate() error {
	p.conn.SetDeadline(time.Now().Add(patience))
	rc := number(tagRoutingContext, p.routingContext)
	for _, s := range []struct {
		send, ack kind
		status    uint32
		params    []param
	}{{msgUp, msgUpAck, asInactive, nil}, {msgActive, msgActiveAck, asActive, []param{rc}}} {
		if err := p.conn.send(s.send, s.params...); err != nil {
			return err
		}
		if _, err := p.conn.expect(s.ack); err != nil {
			return err
		}
		m, err := p.conn.expect(msgNotify)
		if err != nil {
			return err
		}
		if st, err := m.number(tagStatus); err != nil || st != s.status {
			return fmt.Errorf("m3ua: the server is in state %#x, error %v; want %#x", st, err, s.status)
		}
	}
	return nil
}

// request sends a message of SCCP from one point code to another, and returns what the
// destination answers.
func (p *process) request(opc, dpc uint32, link uint8, data []byte) ([]byte, error) {
	p.conn.SetDeadline(time.Now().Add(patience))
	d := &protocolData{opc: opc, dpc: dpc, si: serviceSCCP, network: 2, link: link, data: data}
	if err := p.conn.send(msgData, number(tagRoutingContext, p.routingContext), d.param()); err != nil {
		return nil, err
	}
	m, err := p.conn.expect(msgData)
	if err != nil {
		return nil, err
	}
	if d, err = m.protocolData(); err != nil {
		return nil, err
	}
	if d.opc != dpc || d.dpc != opc || d.si != serviceSCCP || d.link != link {
		return nil, fmt.Errorf("m3ua: an answer of %d to %d on link %d; sent from %d to %d on link %d", d.opc, d.dpc, d.link, opc, dpc, link)
	}
	return d.data, nil
}

// beat checks that the gateway is there.
func (p *process) beat() error {
	p.conn.SetDeadline(time.Now().Add(patience))
	if err := p.conn.send(msgBeat, param{tagHeartbeatData, []byte("alive?")}); err != nil {
		return err
	}
	m, err := p.conn.expect(msgBeatAck)
	if err != nil {
		return err
	}
	if v, _ := m.find(tagHeartbeatData); string(v) != "alive?" {
		return fmt.Errorf("m3ua: heartbeat %q came back as %q", "alive?", v)
	}
	return nil
}

// close takes the process out of service and shuts the association down.
func (p *process) close() error {
	defer p.conn.Close()
	p.conn.SetDeadline(time.Now().Add(patience))
	rc := number(tagRoutingContext, p.routingContext)
	for _, s := range []struct {
		send, ack kind
		params    []param
	}{{msgInactive, msgInactiveAck, []param{rc}}, {msgDown, msgDownAck, nil}} {
		if err := p.conn.send(s.send, s.params...); err != nil {
			return err
		}
		if _, err := p.conn.expect(s.ack); err != nil {
			return err
		}
	}
	if _, err := p.conn.SCTPWrite(nil, &sctp.SndRcvInfo{Flags: sctp.SCTP_EOF}); err != nil {
		return err
	}
	if _, err := p.conn.Read(p.conn.buf); err != io.EOF {
		return fmt.Errorf("m3ua: the association ended with %w", err)
	}
	return nil
}
