package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// healthz reports whether the process works. It asks no database: a process that
// waits for one must not be restarted for it.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	stuck := s.options.Stuck()
	if len(stuck) > 0 {
		answer(w, http.StatusServiceUnavailable, "stuck: "+strings.Join(stuck, ", "))
		return
	}
	answer(w, http.StatusOK, "ok")
}

// readyz reports whether the node can do its work now.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), lookupTimeout)
	defer cancel()
	if err := s.options.Ready(ctx); err != nil {
		s.options.Logger.Debug("Not ready", "err", err)
		answer(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return
	}
	answer(w, http.StatusOK, "ready")
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}
