package web

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// addressHandler serves the clients of the TCP address.
func (s *Server) addressHandler(address net.Addr) http.Handler {
	var h http.Handler = s.pages()
	if required := s.protection(address); required != nil {
		h = s.protected(required, h)
	}
	return headers(readOnly(s.knownHosts(h)))
}

func (s *Server) pages() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /static/{file}", s.asset)
	s.api(mux)
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.options.Gatherer, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{s.options.Logger}, EnableOpenMetrics: true,
	}))
	return mux
}

// scrapeLog logs at WARN what cannot be collected. That a client does not read is its own affair.
type scrapeLog struct{ *slog.Logger }

// Println implements [promhttp.Logger].
func (l scrapeLog) Println(said ...any) {
	text, level := strings.TrimSpace(fmt.Sprintln(said...)), slog.LevelDebug
	if strings.HasPrefix(text, "error gathering") {
		level = slog.LevelWarn
	}
	l.Log(context.Background(), level, "Metrics not delivered", "err", text)
}

// headers keeps browsers from guessing the type of answers, framing and caching them.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// readOnly refuses all methods but GET and HEAD, and requests with a body.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "nothing can be changed here: GET and HEAD only")
		case r.ContentLength != 0: // Or unknown, that is chunked.
			// It is not read, not even in order to use the connection again.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			refuse(w, http.StatusRequestEntityTooLarge, "a request has no body here")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refuse answers, and closes the connection.
func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Connection", "close")
	answer(w, code, text)
}

// healthz reports whether the process works. It asks no database: a process that
// waits for one must not be restarted for it.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	if stuck := s.options.Stuck(); len(stuck) > 0 {
		answer(w, http.StatusServiceUnavailable, "stuck: "+strings.Join(stuck, ", "))
		return
	}
	answer(w, http.StatusOK, "ok")
}

// readyz reports whether the node can do its work now.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
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
