package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// admin is the listener for metrics and profiles.
type admin struct {
	addr   netip.AddrPort
	server *http.Server
	done   chan struct{}
}

func startAdmin(address string, m *metrics, log *slog.Logger) (*admin, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics address: %w", err)
	}
	a := &admin{addr: l.Addr().(*net.TCPAddr).AddrPort(), done: make(chan struct{})}
	if err := checkLoopback(a.addr); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	a.server = &http.Server{Handler: mux, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() {
		defer close(a.done)
		if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("metrics listener ended", "reason", err)
		}
	}()
	return a, nil
}

func (a *admin) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = a.server.Close() // a profile is still being taken
	}
	<-a.done
	return err
}
