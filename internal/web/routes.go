package web

import (
	"log/slog"
	"net"
	"net/http"
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

// socketHandler serves this user and root.
func (s *Server) socketHandler() http.Handler {
	mux := s.pages()
	s.profiles(mux)
	return headers(readOnly(mux))
}

func (s *Server) pages() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.options.Gatherer, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelWarn), EnableOpenMetrics: true,
	}))
	return mux
}

// headers keeps browsers from guessing the type of answers, framing and caching them.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
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
