package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/nearest"
	"github.com/observerd/observerd/internal/status"
)

// Lookups are what the API reads beside the report. Lists are newest first and have at most
// limit entries.
type Lookups interface {
	// Observer returns all that is known of the i-th observer of the report.
	Observer(ctx context.Context, r status.Report, i int) (status.ObserverDetails, error)
	// Polls returns the last polls of an observer; empty means of all.
	Polls(ctx context.Context, observer string, limit int) ([]status.Poll, error)
	// Locks returns the general locks that are held, or the holders of the one with that text.
	// Of more locks than the limit it is not said which. A text that is no lock is an
	// [InvalidError].
	Locks(ctx context.Context, text string, limit int) ([]status.HeldLock, error)
	// Events returns the last events of an observer, without data unless it may be shown.
	Events(ctx context.Context, observer string, limit int) ([]events.Event, error)
}

// InvalidError is a value of a parameter that cannot be used.
type InvalidError struct{ Parameter, Reason string }

// Error implements error.
func (e *InvalidError) Error() string { return e.Parameter + ": " + e.Reason }

const (
	apiPath = "/api/v1/"
	// presetLimit and maxLimit are the entries of a list.
	presetLimit = 100
	maxLimit    = 1000
	// maxLookups are those of the API at a time: they use the connections of the node's own
	// work.
	maxLookups = 4
)

// api serves the API.
func (s *Server) api(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, problem{
			Status: http.StatusNotFound,
			Detail: fmt.Sprintf("there is no %q; %sopenapi.json describes what there is", shortened(r.URL.Path), apiPath),
		})
	})
	mux.HandleFunc("GET "+apiPath+"openapi.json", s.look(nil, func(context.Context, query) (any, error) { return openAPI(), nil }))
	mux.HandleFunc("GET "+apiPath+"status", s.look(nil, func(ctx context.Context, _ query) (any, error) { return s.report(ctx) }))
	mux.HandleFunc("GET "+apiPath+"observers/{id}", s.bounded(s.look(nil, s.observer)))
	mux.HandleFunc("GET "+apiPath+"polls", s.bounded(s.look([]string{"observer", "limit"}, s.polls)))
	mux.HandleFunc("GET "+apiPath+"locks", s.bounded(s.look([]string{"lock", "limit"}, func(ctx context.Context, q query) (any, error) {
		return s.options.Lookups.Locks(ctx, q.values["lock"], q.limit)
	})))
	mux.HandleFunc("GET "+apiPath+"events", s.bounded(s.look([]string{"observer", "limit"}, s.events)))
}

// query is what a request asks for.
type query struct {
	// id is that of the path.
	id string
	// values are the parameters, none of them empty.
	values map[string]string
	limit  int
}

func parse(r *http.Request, parameters []string) (query, error) {
	q := query{id: r.PathValue("id"), values: make(map[string]string), limit: presetLimit}
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, &InvalidError{"query", "the part behind ? cannot be read; use name=value, joined by &, with other characters as %xx"}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		switch values := given[name]; {
		case !slices.Contains(parameters, name) && len(parameters) == 0:
			return q, &InvalidError{shortened(name), "no parameter is taken here; leave it out"}
		case !slices.Contains(parameters, name):
			return q, &InvalidError{shortened(name), "there is no such parameter; use " + cmp.Or(nearest.Name(shortened(name), parameters), strings.Join(parameters, " or "))}
		case len(values) > 1 || values[0] == "":
			return q, &InvalidError{name, "it is empty or given twice; give one value, or leave it out"}
		}
		q.values[name] = given.Get(name)
	}
	if text, ok := q.values["limit"]; ok {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > maxLimit || strconv.Itoa(q.limit) != text {
			return q, &InvalidError{"limit", fmt.Sprintf("%q is not a number from 1 to %d; use limit=%d", shortened(text), maxLimit, presetLimit)}
		}
	}
	return q, nil
}

// look returns a handler that answers with what read finds, as JSON.
func (s *Server) look(parameters []string, read func(context.Context, query) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := parse(r, parameters)
		if err != nil {
			s.failed(w, r, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), lookupTimeout)
		defer cancel()
		found, err := read(ctx, q)
		if err != nil {
			s.failed(w, r, err)
			return
		}
		write(w, http.StatusOK, "application/json", found)
	}
}

// bounded bounds how many of these look-ups take place at a time.
func (s *Server) bounded(read http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.lookups <- struct{}{}:
			defer func() { <-s.lookups }()
			read(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			fail(w, problem{
				Status: http.StatusTooManyRequests,
				Detail: fmt.Sprintf("%d requests are answered already; ask again in a second, or %sstatus, which many may ask", maxLookups, apiPath),
			})
		}
	}
}

// observer looks up the observer of the path.
func (s *Server) observer(ctx context.Context, q query) (any, error) {
	r, i, err := s.find(ctx, q.id)
	if err != nil {
		return nil, err
	}
	return s.options.Lookups.Observer(ctx, r, i)
}

func (s *Server) polls(ctx context.Context, q query) (any, error) {
	id := q.values["observer"]
	if id != "" {
		if _, _, err := s.find(ctx, id); err != nil {
			return nil, err
		}
	}
	return s.options.Lookups.Polls(ctx, id, q.limit)
}

// events are those of one observer: there is no order, and no index, over all of the log.
func (s *Server) events(ctx context.Context, q query) (any, error) {
	id := q.values["observer"]
	if id == "" {
		return nil, &InvalidError{"observer", "it is missing; use observer=ID with an id of " + apiPath + "status"}
	}
	if _, _, err := s.find(ctx, id); err != nil {
		return nil, err
	}
	found, err := s.options.Lookups.Events(ctx, id, q.limit)
	return fn.Each(found, func(e events.Event) json.RawMessage { return events.AppendJSON(nil, &e) }), err
}

// find returns the report, and which of its observers has the id.
func (s *Server) find(ctx context.Context, id string) (status.Report, int, error) {
	r, err := s.report(ctx)
	if err != nil {
		return r, 0, err
	}
	known := fn.Each(r.Observers, func(o status.Observer) string { return o.ID })
	i := slices.Index(known, id)
	if i < 0 {
		return r, 0, &unknownError{shortened(id), nearest.Name(shortened(id), known)}
	}
	return r, i, nil
}

// unknownError is an observer that there is not, and the one with the nearest id.
type unknownError struct{ id, near string }

func (e *unknownError) Error() string {
	if e.near == "" {
		return fmt.Sprintf("there is no observer %q; %sstatus lists them", e.id, apiPath)
	}
	return fmt.Sprintf("there is no observer %q; use %s", e.id, e.near)
}

// shortened is what a client wrote, cut to what an answer may repeat.
func shortened(text string) string { return strings.ToValidUTF8(text[:min(len(text), 100)], "") }
