package web

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/observerd/observerd/internal/jsontext"
	"github.com/observerd/observerd/internal/status"
)

// problem is an error of the API, as RFC 9457 has it.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what is wrong and what to do instead.
	Detail string `json:"detail"`
	// Parameter is the one that is wrong.
	Parameter string `json:"parameter,omitempty"`
}

// failed answers with an error of a request, or of the database: 500 for what it holds, and
// 503 for what may pass.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, err error) {
	switch invalid, is := errors.AsType[*InvalidError](err); {
	case is:
		fail(w, problem{Status: http.StatusBadRequest, Detail: err.Error(), Parameter: invalid.Parameter})
	case errors.As(err, new(*unknownError)):
		fail(w, problem{Status: http.StatusNotFound, Detail: err.Error()})
	default:
		if r.Context().Err() == nil { // Otherwise the client has gone.
			s.options.Logger.Warn("API without data", "path", r.URL.Path, "err", err)
		}
		code := http.StatusInternalServerError
		if !errors.Is(err, status.ErrContent) {
			code = http.StatusServiceUnavailable
			w.Header().Set("Retry-After", "5")
		}
		fail(w, problem{Status: code, Detail: s.options.Explain(err)})
	}
}

func fail(w http.ResponseWriter, p problem) {
	p.Title = http.StatusText(p.Status)
	write(w, p.Status, "application/problem+json", p)
}

// write answers with a value as JSON. The type is for all answers of the API.
func write(w http.ResponseWriter, code int, mediaType string, value any) {
	text, err := json.Marshal(jsontext.Shaped(value))
	if err != nil {
		answer(w, http.StatusInternalServerError, "the answer cannot be written as JSON")
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // A client that went away needs no answer.
}
