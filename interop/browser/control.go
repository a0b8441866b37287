package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// stateInterval is how often the program tells the page its state.
const stateInterval = 500 * time.Millisecond

// A command is what the page asks for on the control channel. The answer has the same number.
type command struct {
	Number  uint64         `json:"number"`
	Do      string         `json:"do"`      // open, close, loss, state or ping
	Channel uint16         `json:"channel"` // of close
	Open    channelRequest `json:"open"`
	Loss    float64        `json:"loss"` // of loss: percent of the packets in each direction
}

// An event is what the program says on the control channel.
type event struct {
	Event  string       `json:"event"`            // answer, state or closed
	Number uint64       `json:"number,omitempty"` // of an answer
	Error  string       `json:"error,omitempty"`
	State  *peerState   `json:"state,omitempty"`
	Closed *closedState `json:"closed,omitempty"`
}

// closedState says what has been sent and received on a channel that has closed.
type closedState struct {
	channelState
	Error string `json:"error,omitempty"`
}

// errSecondControl refuses another control channel.
var errSecondControl = errors.New("there is a control channel already")

// serveControl reads commands until the channel closes, which ends the peer.
func (p *peer) serveControl(c *channel) error {
	p.mu.Lock()
	if p.control != nil {
		p.mu.Unlock()
		return errSecondControl
	}
	p.control = c
	p.mu.Unlock()
	defer p.end(errors.New("the control channel has closed"))
	go func() {
		tick := time.NewTicker(stateInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s := p.state()
				p.tell(event{Event: "state", State: &s})
			case <-c.ended:
				return
			case <-p.done.Done():
				return
			}
		}
	}()
	return c.read(func(b []byte, _ bool) error {
		c.note(len(b))
		var cmd command
		if err := json.Unmarshal(b, &cmd); err != nil {
			return fmt.Errorf("command: %w", err)
		}
		p.tell(p.obey(cmd))
		return nil
	})
}

// obey runs a command of the page.
func (p *peer) obey(cmd command) event {
	e := event{Event: "answer", Number: cmd.Number}
	switch cmd.Do {
	case "open":
		if err := p.open(cmd.Open); err != nil {
			e.Error = err.Error()
		}
	case "close":
		if c := p.find(cmd.Channel); c == nil {
			e.Error = fmt.Sprintf("channel %d is not open", cmd.Channel)
		} else if err := c.dc.Close(); err != nil {
			e.Error = err.Error()
		}
	case "ping":
	case "loss":
		p.net.setLoss(cmd.Loss)
	case "state":
		s := p.state()
		e.State = &s
	default:
		e.Error = fmt.Sprintf("command %q: want open, close, loss, state or ping", cmd.Do)
	}
	return e
}

// tell sends an event to the page, if it has a control channel.
func (p *peer) tell(e event) {
	p.mu.Lock()
	c := p.control
	p.mu.Unlock()
	if c == nil {
		return
	}
	for {
		b, err := json.Marshal(e)
		if err != nil {
			panic(err) // all of it is numbers and strings
		}
		err = c.write(b, true) // fails when the peer has ended, or takes no message of that length
		if err == nil || e.State == nil {
			return
		}
		e.State, e.Error = nil, err.Error()
	}
}

// channelClosed tells the page what arrived on a channel before it closed.
func (p *peer) channelClosed(c *channel, err error) {
	s := closedState{channelState: c.state()}
	if err != nil {
		s.Error = err.Error()
	}
	p.tell(event{Event: "closed", Closed: &s})
}
