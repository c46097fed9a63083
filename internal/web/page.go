package web

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/observerd/observerd/internal/status"
)

//go:embed page.html
var pageText string

// view is the data of the page.
type view struct {
	Node, Version string
	// Err is why there is no report; empty when there is one.
	Err string
	// Exposed says that other hosts may read the page without TLS or authentication.
	Exposed bool
	Report  status.Report
}

// page shows the cluster. A database that does not answer is a message on the
// page: the process itself works.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), lookupTimeout)
	defer cancel()
	v := view{Node: s.options.Node, Version: s.options.Version}
	v.Exposed = s.options.Exposed != nil && s.options.Exposed()
	report, err := s.options.Report(ctx)
	if err != nil {
		v.Err = s.options.Explain(err)
		if r.Context().Err() == nil { // Otherwise the client has gone.
			s.options.Logger.Warn("Status page without data", "err", err)
		}
	}
	v.Report = report
	var body bytes.Buffer
	if err := pageTemplate().Execute(&body, v); err != nil {
		s.options.Logger.Error("Error rendering the status page", "err", err)
		http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = body.WriteTo(w) // A client that went away needs no page.
}

func pageTemplate() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"time": func(t time.Time) string {
			if t.IsZero() {
				return "never"
			}
			return t.UTC().Format("2006-01-02 15:04:05")
		},
		"dur": func(d time.Duration) string { return d.Round(time.Millisecond).String() },
	}).Parse(pageText))
}
