package server

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// profiles adds the profiles of this process to mux. Taking one costs something
// only while it is taken; those of waiting are recorded only then.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.Handle("GET /debug/pprof/block", &waiting{
		name: "block",
		on:   func() { runtime.SetBlockProfileRate(blockRate) },
		off:  func() { runtime.SetBlockProfileRate(0) },
	})
	mux.Handle("GET /debug/pprof/mutex", &waiting{
		name: "mutex",
		on:   func() { runtime.SetMutexProfileFraction(mutexFraction) },
		off:  func() { runtime.SetMutexProfileFraction(0) },
	})
}

// waiting is a profile of where goroutines wait. Recording it costs each wait
// something, so it is on only for as long as somebody takes the profile, which
// needs ?seconds=N.
type waiting struct {
	name    string
	on, off func()
	taken   sync.Mutex // while one is taken: there is one switch for the process
}

// ServeHTTP records for as long as the request says, and answers with what was
// recorded in that time.
func (p *waiting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.Atoi(r.FormValue("seconds"))
	if err != nil || seconds < 1 || seconds > int(maxProfile/time.Second) {
		http.Error(w, "say for how long to record: ?seconds=N, from 1 to "+strconv.Itoa(int(maxProfile/time.Second)), http.StatusBadRequest)
		return
	}
	if !p.taken.TryLock() {
		http.Error(w, "somebody takes this profile already", http.StatusConflict)
		return
	}
	defer p.taken.Unlock()
	p.on()
	defer p.off()
	pprof.Handler(p.name).ServeHTTP(w, r)
}
