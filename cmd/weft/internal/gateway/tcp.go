package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/weftstack/weft/cmd/weft/internal/gateway/tcp"
	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/sctp"
)

// TCP is what a gateway has carried of other programs' TCP connections.
type TCP struct {
	Active     int    `json:"active"`
	Sent       uint64 `json:"bytes_sent"`
	Received   uint64 `json:"bytes_received"`
	Accepted   uint64 `json:"accepted"`
	Connected  uint64 `json:"connected"`
	Failed     uint64 `json:"failed"`
	Outside    uint64 `json:"outside"`
	TooMany    uint64 `json:"too_many"`
	BadClients uint64 `json:"bad_clients"`
	Requests   uint64 `json:"requests"`
	Dialed     uint64 `json:"dialed"`
	DialFailed uint64 `json:"dial_failed"`
	Forbidden  uint64 `json:"forbidden"`
	Resets     uint64 `json:"resets"`
}

// tcpConfig returns what the sites file says for TCP connections.
func (d *daemon) tcpConfig() (c tcp.Config, err error) {
	jobs, err := d.file.JobsKey()
	if err != nil {
		return c, err
	}
	c = tcp.Config{
		Gateway: d.gateway.Number, Job: sites.TCPJob, Key: sites.JobKey(jobs, sites.TCPJob), Log: d.log,
		LAN: []sctp.Addr{d.gateway.LANAddr()},
	}
	for _, g := range d.site.Gateways {
		if g != d.gateway {
			c.LAN = append(c.LAN, g.LANAddr())
		}
	}
	for _, s := range d.file.Sites {
		t := tcp.Site{Number: s.Number, Ranges: s.TCP}
		for _, g := range s.Gateways {
			t.Gateways = append(t.Gateways, g.Number)
		}
		if s == d.site {
			c.Own = t
		} else {
			c.Others = append(c.Others, t)
		}
	}
	return c, nil
}

// printRules is -tcp-rules.
func (d *daemon) printRules(o *tcp.Options, w io.Writer) error {
	c, err := d.tcpConfig()
	if err != nil {
		return err
	}
	text, err := o.Text(&c)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}

// startTCP begins to carry TCP connections, if there is a way for any.
func (d *daemon) startTCP(ctx context.Context, o *tcp.Options) error {
	c, err := d.tcpConfig()
	if err != nil || !o.On(&c) {
		return err
	}
	if d.tcp, err = o.Start(ctx, c); err != nil {
		return err
	}
	d.log.Info("TCP connections are carried", slog.String("tcp", o.Listen), slog.String("mode", o.Mode),
		slog.String("socks", o.SOCKS), slog.Any("own ranges", c.Own.Ranges))
	return nil
}

// tcpStatus returns what the gateway has carried, nil if nothing is.
func (d *daemon) tcpStatus() *TCP {
	if d.tcp == nil {
		return nil
	}
	s := d.tcp.Stats()
	return &TCP{
		Active: s.Active, Sent: s.BytesSent, Received: s.BytesReceived, Accepted: s.Accepted, Connected: s.Connected,
		Failed: s.Failed, Outside: s.Outside, TooMany: s.TooMany, BadClients: s.BadClients, Requests: s.Requests,
		Dialed: s.Dialed, DialFailed: s.DialFailed, Forbidden: s.Forbidden, Resets: s.Resets,
	}
}

// print prints it for people.
func (t *TCP) print(w io.Writer) {
	fmt.Fprintf(w, "\nTCP: %d connections, %.1f MiB sent, %.1f MiB received\n", t.Active, mib(t.Sent), mib(t.Received))
	fmt.Fprintf(w, "  of programs of this site: %d taken in, %d connected, %d failed, %d to destinations outside, %d too many, %d bad clients\n",
		t.Accepted, t.Connected, t.Failed, t.Outside, t.TooMany, t.BadClients)
	fmt.Fprintf(w, "  for other sites: %d asked for, %d connected, %d failed, %d forbidden; %d resets\n",
		t.Requests, t.Dialed, t.DialFailed, t.Forbidden, t.Resets)
}

// tcpCounter is a counter for Prometheus.
type tcpCounter struct {
	name, help string
	n          uint64
}

func (t *TCP) counters() []tcpCounter {
	return []tcpCounter{
		{"tcp_sent_bytes_total", "Bytes of TCP connections sent to other sites.", t.Sent},
		{"tcp_received_bytes_total", "Bytes of TCP connections received from other sites.", t.Received},
		{"tcp_accepted_total", "TCP connections of programs of this site that were taken in.", t.Accepted},
		{"tcp_connected_total", "TCP connections of them that the far side has connected.", t.Connected},
		{"tcp_failed_total", "TCP connections of them that it has not.", t.Failed},
		{"tcp_outside_total", "Destinations in no range of another site.", t.Outside},
		{"tcp_too_many_total", "TCP connections beyond the limit.", t.TooMany},
		{"tcp_bad_clients_total", "Clients that did not speak SOCKS5, or could not authenticate.", t.BadClients},
		{"tcp_requests_total", "TCP connections that other sites asked for.", t.Requests},
		{"tcp_dialed_total", "TCP connections to hosts of this site.", t.Dialed},
		{"tcp_dial_failed_total", "Hosts of this site that refused a connection, or did not answer.", t.DialFailed},
		{"tcp_forbidden_total", "Requests for hosts outside of this site's ranges.", t.Forbidden},
		{"tcp_resets_total", "TCP connections that ended by a reset.", t.Resets},
	}
}
