package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// defaultStatus is where a gateway tells its state unless something else is said: on this host only.
	defaultStatus = "127.0.0.1:9180"
	// maxStatusConns bounds the connections of the status server: further ones wait.
	maxStatusConns = 16
	// statusTimeout bounds how long a request, its header or an idle connection takes.
	statusTimeout = 10 * time.Second
	// maxStatusHeader bounds the header of a request in bytes.
	maxStatusHeader = 8 << 10
)

// listen opens the socket of the status server, or none.
func (d *daemon) listen(o *options) (net.Listener, error) {
	addr := o.status
	if addr == "" && d.gateway.Status.IsValid() {
		addr = d.gateway.Status.String()
	}
	switch addr {
	case "off":
		return nil, nil
	case "":
		addr = defaultStatus
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("status server: %w (-status gives another address, or turns it off)", err)
	}
	return l, nil
}

// serve answers requests until the listener is closed.
func (d *daemon) serve(l net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(d.status()) // the client has gone
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(appendMetrics(nil, d.status()))
	})
	s := &http.Server{
		Handler: mux, ReadTimeout: statusTimeout, ReadHeaderTimeout: statusTimeout, WriteTimeout: statusTimeout,
		IdleTimeout: statusTimeout, MaxHeaderBytes: maxStatusHeader,
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	err := s.Serve(netutil.LimitListener(l, maxStatusConns))
	if !errors.Is(err, net.ErrClosed) {
		d.log.Error("status server has ended", slog.Any("error", err))
	}
}
