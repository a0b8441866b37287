package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	sctp "github.com/weftstack/weft/sctp/sockets"
)

// gateway is a signalling gateway that has one application server, which any process may serve.
// It sends all traffic back, with the point codes exchanged.
type gateway struct {
	routingContext uint32
	log            *slog.Logger
}

// serve serves processes until the listener is closed, and returns when all have left.
func (g *gateway) serve(ln *sctp.SCTPListener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := ln.AcceptSCTP()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
		wg.Go(func() {
			defer c.Close()
			if err := g.process(c); err != nil {
				g.log.Error("association ended", "error", err)
			}
		})
	}
}

// The states of an application server process (RFC 4666, Section 4.3.1).
const (
	stateDown = iota
	stateInactive
	stateActive
)

// process serves one process until it leaves.
func (g *gateway) process(sc *sctp.SCTPConn) error {
	c, err := newConn(sc, g.log)
	if err != nil {
		return err
	}
	state := stateDown
	for {
		m, err := c.receive()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if state, err = g.handle(c, m, state); err != nil {
			return err
		}
	}
}

// handle answers a message and returns the new state.
func (g *gateway) handle(c *conn, m *message, state int) (int, error) {
	answer := func(next int, k kind, params ...param) (int, error) {
		return next, c.send(k, params...)
	}
	switch m.kind {
	case msgUp: // Section 4.3.4.1 says what it means in each state
		if _, err := answer(0, msgUpAck); err != nil || state == stateInactive {
			return state, err
		}
		if state == stateActive {
			return answer(stateInactive, msgError, number(tagErrorCode, errUnexpectedMessage))
		}
		return answer(stateInactive, msgNotify, number(tagStatus, asInactive))
	case msgDown:
		return answer(stateDown, msgDownAck)
	case msgActive, msgInactive:
		if state == stateDown {
			break
		}
		rc, err := g.checkContext(m)
		if err != nil {
			return state, c.refuse(err)
		}
		if m.kind == msgInactive {
			return answer(stateInactive, msgInactiveAck, rc...)
		}
		if _, err := answer(0, msgActiveAck, rc...); err != nil || state == stateActive {
			return state, err
		}
		return answer(stateActive, msgNotify, append(rc, number(tagStatus, asActive))...)
	case msgData:
		if state != stateActive {
			break
		}
		rc, err := g.checkContext(m)
		if err != nil {
			return state, c.refuse(err)
		}
		d, err := m.protocolData()
		if err != nil {
			return state, c.refuse(err)
		}
		d.opc, d.dpc = d.dpc, d.opc
		return answer(state, msgData, append(rc, d.param())...)
	case msgError, msgNotify, msgBeatAck:
		return state, nil
	default:
		code := uint32(errMessageType)
		if c := m.kind >> 8; c != 0 && c != 1 && c != 3 && c != 4 {
			code = errMessageClass
		}
		return state, c.refuse(&codedError{code, fmt.Sprintf("m3ua: message %#04x is not supported", m.kind)})
	}
	return state, c.refuse(&codedError{errUnexpectedMessage, fmt.Sprintf("m3ua: message %#04x in state %d", m.kind, state)})
}

// checkContext returns the Routing Context of a message, none if it has none, which is enough
// where there is one application server.
func (g *gateway) checkContext(m *message) ([]param, error) {
	if _, ok := m.find(tagRoutingContext); !ok {
		return nil, nil
	}
	rc, err := m.number(tagRoutingContext)
	if err == nil && rc != g.routingContext {
		err = &codedError{errRoutingContext, fmt.Sprintf("m3ua: routing context %d: %d", rc, g.routingContext)}
	}
	return []param{number(tagRoutingContext, rc)}, err
}
