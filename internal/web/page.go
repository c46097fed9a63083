package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/observerd/observerd/internal/status"
)

//go:embed page.html style.css page.js
var files embed.FS

// static are the files that the page asks for, by name.
var static = map[string]file{
	"style.css":    {"text/css; charset=utf-8", mustRead("style.css")},
	"page.js":      {"text/javascript; charset=utf-8", mustRead("page.js")},
	"ok.svg":       icon("#1a7f4b", "M9 16.5l5 5 9-10"),
	"degraded.svg": icon("#b45f06", "M16 8v10M16 23v1"),
	"failing.svg":  icon("#c5221f", "M10 10l12 12M22 10l-12 12"),
	"unknown.svg":  icon("#5f6b7a", "M9 16h14"),
}

// assetVersion changes with the static files, so that browsers may keep them.
var assetVersion = digest(mustRead("style.css"), mustRead("page.js"))

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"num": number, "span": span, "asset": func(name string) string { return "/static/" + name + "?v=" + assetVersion },
}).ParseFS(files, "page.html"))

func mustRead(name string) []byte {
	body, err := files.ReadFile(name)
	if err != nil {
		panic(err) // It is embedded.
	}
	return body
}

type file struct {
	mime string
	body []byte
}

// icon tells the levels apart by form, too, not by color alone.
func icon(color, mark string) file {
	return file{"image/svg+xml", []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="` + color +
		`"/><path d="` + mark + `" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round" stroke-linejoin="round"/></svg>`)}
}

func digest(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write(part) // It never fails.
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// asset serves a static file, whose URL changes with it.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	file, ok := static[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", file.mime)
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(file.body) // A client that went away needs none.
}

// rendered is the page of one reading. The tag changes with what it says, not with the
// time that passes.
type rendered struct {
	body []byte
	tag  string
}

// lasting leaves out of a page what changes with time alone: the text of its times.
func lasting(page []byte) []byte {
	all := make([]byte, 0, len(page))
	for i, part := range bytes.Split(page, []byte("<time")) {
		if i > 0 {
			attributes, rest, _ := bytes.Cut(part, []byte(">"))
			all = append(all, attributes...)
			_, part, _ = bytes.Cut(rest, []byte("<"))
		}
		all = append(all, part...)
	}
	return all
}

// page shows the cluster. A database that does not answer is a message on the page: the
// process itself works.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	p, err := s.read(r.Context()).page()
	if err != nil {
		s.options.Logger.Error("Error rendering the status page", "err", err)
		http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("ETag", p.tag)
	if r.Header.Get("If-None-Match") == p.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(p.body) // A client that went away needs no page.
}

func (s *Server) render(r *reading) (rendered, error) {
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, s.view(r)); err != nil {
		return rendered{}, fmt.Errorf("render the page: %w", err)
	}
	return rendered{body.Bytes(), `"` + digest(lasting(body.Bytes())) + `"`}, nil
}

const clockForm = "2006-01-02 15:04:05"

// Time is a time as the distance from now; the exact one is its tooltip, which the script
// adds to a large page.
func (v view) Time(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	title := ""
	if !v.Large {
		title = ` title="` + t.Format(clockForm) + ` UTC"`
	}
	return template.HTML(`<time datetime="` + t.Format("2006-01-02T15:04:05Z") + `"` + title + `>` + relative(t.Sub(v.Now)) + `</time>`) //nolint:gosec // Nothing in it comes from outside.
}

// Due is the time of what is yet to be done.
func (v view) Due(t time.Time) template.HTML {
	if !t.IsZero() && t.Before(v.Now) {
		return "now"
	}
	return v.Time(t)
}

func relative(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d == 0:
		return "now"
	case d > 0:
		return "in " + span(d)
	}
	return span(-d) + " ago"
}

// span words a duration: minutes without their seconds.
func span(d time.Duration) string {
	if d < time.Minute {
		return status.Span(d.Truncate(time.Millisecond))
	}
	return status.Span(d.Truncate(time.Minute))
}

// number groups the digits of a number.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// alerts is the address of the runbooks.
const alerts = "https://github.com/observerd/observerd/blob/main/docs/runbooks/"

// Runbook is the address of a runbook.
func (view) Runbook(name string) string { return alerts + name + ".md" }

// cut returns the first of a list, and how many it leaves out.
func cut[T any](all []T, most int) ([]T, int64) {
	if len(all) <= most {
		return all, 0
	}
	return all[:most], int64(len(all) - most)
}
