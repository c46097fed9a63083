package web

import (
	"context"
	"net/http"
	"net/http/pprof"
)

// profiles adds the handlers of pprof, for the socket alone: a profile slows the
// process down and shows its inside. A profile takes as long as the request asks for:
// pprof itself extends the write timeout.
func (s *Server) profiles(mux *http.ServeMux) {
	for path, handler := range map[string]http.HandlerFunc{
		"/debug/pprof/": pprof.Index, "/debug/pprof/profile": pprof.Profile, "/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
	} {
		mux.Handle("GET "+path, s.untilStop(handler))
	}
	mux.HandleFunc("GET /debug/pprof/cmdline", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, "left out: a command line may hold passwords, as in --set database.url=…")
	})
}

// untilStop cancels a request when the server stops. Otherwise a stop would wait for a
// profile that takes minutes.
func (s *Server) untilStop(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.stopping, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
