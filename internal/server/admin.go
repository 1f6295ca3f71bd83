package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"atoll/internal/transport"
)

// ErrNotLoopback refuses a metrics address that others could reach.
var ErrNotLoopback = errors.New("metrics and profiles have no authentication and are served on a loopback address only")

// admin is the listener for metrics and profiles.
type admin struct {
	addr     netip.AddrPort
	listener net.Listener
	server   http.Server
}

// CheckMetrics returns an error that wraps ErrNotLoopback if others could reach
// the address. One that doesn't resolve is for Start to refuse.
func CheckMetrics(address string) error {
	if a, err := net.ResolveTCPAddr("tcp", address); err == nil && !a.IP.IsLoopback() {
		return fmt.Errorf("%s: %w", address, ErrNotLoopback)
	}
	return nil
}

// listenAdmin binds address and serves nothing yet.
func listenAdmin(address string) (*admin, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", transport.NewListenError(address, err))
	}
	a := &admin{addr: l.Addr().(*net.TCPAddr).AddrPort(), listener: l}
	if !a.addr.Addr().IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s: %w", address, ErrNotLoopback), l.Close())
	}
	return a, nil
}

// serve serves until close. alive says why the node has failed, if so, and
// ready why it can't do all of its work.
func (a *admin) serve(m *metrics, alive, ready func() error, log *slog.Logger) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	for path, is := range map[string]func() error{"GET /livez": alive, "GET /healthz": ready} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			if err := is(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		})
	}
	profiles(mux)
	a.server.Handler = mux
	a.server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		log.Warn("metrics listener ended", "reason", err)
	}
}

func (a *admin) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = a.server.Close() // a profile is still being taken
	}
	// Serve has closed the listener, if it was called.
	if cerr := a.listener.Close(); cerr != nil && !errors.Is(cerr, net.ErrClosed) {
		err = errors.Join(err, cerr)
	}
	return err
}
