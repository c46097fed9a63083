package app_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
)

// api asks a node, and holds each answer against the document that the node serves.
type api struct {
	node     *app.App
	compiler *jsonschema.Compiler
	document map[string]any
	// seen are the paths, with their codes, that were answered.
	seen map[string]bool
}

func newAPI(t *testing.T, node *app.App) *api {
	t.Helper()
	a := &api{node: node, compiler: jsonschema.NewCompiler(), seen: make(map[string]bool)}
	a.compiler.AssertFormat()
	code, text := get(t, node, "/api/v1/openapi.json")
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = a.compiler.AddResource("openapi.json", document)
	}
	if err != nil || code != http.StatusOK {
		t.Fatalf("%d, %v: %s", code, err, text)
	}
	a.document = document.(map[string]any)
	return a
}

// at is a part of the document; a $ref is followed.
func (a *api) at(t *testing.T, path ...string) (part map[string]any, pointer string) {
	t.Helper()
	part, pointer = a.document, "#"
	for _, name := range path {
		next, ok := part[name].(map[string]any)
		if !ok {
			t.Fatalf("the document has no %s in %s", name, pointer)
		}
		part, pointer = next, pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
		if ref, ok := part["$ref"].(string); ok {
			part, pointer = a.at(t, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
	}
	return part, pointer
}

// ask requests a path, of which operation is the form in the document, and returns the text of
// an answer with that code.
func (a *api) ask(t *testing.T, method, operation, path string, code int) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.node.Addr()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != code || response.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s %s: %d, want %d, %v: %s", method, path, response.StatusCode, code, err, text)
	}
	if wait := response.Header.Get("Retry-After"); (wait != "") != (code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests) {
		t.Errorf("%s: Retry-After %q with %d", path, wait, code)
	}
	a.seen[operation+" "+strconv.Itoa(code)] = true
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	_, pointer := a.at(t, "paths", operation, "get", "responses", strconv.Itoa(code), "content", kind, "schema")
	if kind == "text/plain" {
		return string(text)
	}
	schema, err := a.compiler.Compile("openapi.json" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", path, err, text)
	}
	return string(text)
}

// list is ask for a list with at least so many entries.
func (a *api) list(t *testing.T, operation, query string, least int) []map[string]any {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(a.ask(t, http.MethodGet, operation, operation+query, http.StatusOK)), &list); err != nil || len(list) < least {
		t.Fatalf("%s%s: %d entries, want %d, %v", operation, query, len(list), least, err)
	}
	return list
}

// holdLocks acquires two locks until the test ends, one of them shared by two.
func (p place) holdLocks(t *testing.T) {
	t.Helper()
	provider, err := database.Open(t.Context(), p.config.Database.URL.Reveal(), database.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := locks.Open(t.Context(), locks.Options{Provider: provider, Node: "worker"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, text := range []string{"lock:exclusive:audit:processing:nightly", "lock:shared:page:reading:doc-1", "lock:shared:page:reading:doc-1"} {
		d, err := locks.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		d.TTL, d.Metadata = time.Minute, map[string]string{"ticket": "WMS-1"}
		lease, err := m.Acquire(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := lease.Release(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// poison makes an order that cannot become an event.
func (p place) poison(t *testing.T) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(p.folder, "warehouse.db")+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), `UPDATE orders SET updated_at = 'soon' WHERE order_id = (SELECT min(order_id) FROM orders)`); err != nil {
		t.Fatal(err)
	}
}

// TestAPI asks for everything that there is and for much that there is not, of a cluster with
// events, polls, locks and poison, and holds each answer against the document.
func TestAPI(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		if err := p.warehouse.Step(t.Context(), 200); err != nil {
			t.Fatal(err)
		}
		p.poison(t)
		node := p.start(t)
		op := p.operator(t)
		eventually(t, p.delivered(t, op, "orders", 3))
		eventually(t, func() error { return page(t, node, "/api/v1/status", `"what":"observer orders"`, `"live_rows":`) })
		p.holdLocks(t)
		a := newAPI(t, node)
		a.isOpenAPI(t)
		a.answersWell(t)
		a.refuses(t)
		if _, err := op.Pause(t.Context(), "orders", admin.By{Actor: "test", Reason: "WMS-1"}, 0); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error { // The report is up to a second old.
			if text := a.ask(t, http.MethodGet, "/api/v1/status", "/api/v1/status", http.StatusOK); !strings.Contains(text, `"pause":{`) {
				return errors.New(text)
			}
			return nil
		})
		if text := a.ask(t, http.MethodGet, "/api/v1/observers/{id}", "/api/v1/observers/orders", http.StatusOK); !strings.Contains(text, `"action":"pause"`) {
			t.Error(text)
		}
		a.ask(t, http.MethodGet, "/api/v1/events", "/api/v1/events?observer=ordres", http.StatusNotFound)
		beside := p.beside(t)
		execute := func(text string) {
			t.Helper()
			if _, err := beside.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasPrefix(p.config.Database.URL.Reveal(), "sqlite:") {
			execute(`UPDATE obs_poll SET poison_count = 'geheim'`)
		} else {
			execute(`ALTER TABLE obs_poll ALTER poison_count DROP NOT NULL`)
			execute(`UPDATE obs_poll SET poison_count = NULL`)
		}
		for operation, path := range map[string]string{"/api/v1/polls": "/api/v1/polls", "/api/v1/observers/{id}": "/api/v1/observers/orders", "/api/v1/status": "/api/v1/status"} {
			eventually(t, func() error { // The report is up to a second old.
				code, _ := get(t, node, path)
				if code != http.StatusInternalServerError {
					return fmt.Errorf("%s: %d", path, code)
				}
				return nil
			})
			if text := a.ask(t, http.MethodGet, operation, path, http.StatusInternalServerError); strings.Contains(text, "geheim") || !strings.Contains(text, ": column ") {
				t.Errorf("%s: %s", path, text)
			}
		}
		execute(`UPDATE obs_poll SET poison_count = 0`)
		eventually(t, func() error { return page(t, node, "/api/v1/status", `"live_rows":`) })
		execute(`ALTER TABLE obs_event RENAME TO obs_gone`)
		a.ask(t, http.MethodGet, "/api/v1/events", "/api/v1/events?observer=orders", http.StatusServiceUnavailable)
		a.list(t, "/api/v1/polls", "?observer=orders", 1)
		for path := range a.document["paths"].(map[string]any) {
			responses, _ := a.at(t, "paths", path, "get", "responses")
			for _, code := range []string{"200", "400", "404"} {
				if responses[code] != nil && !a.seen[path+" "+code] {
					t.Errorf("%s never answered %s: %v", path, code, a.seen)
				}
			}
			if looksUp := path != "/api/v1/openapi.json" && path != "/api/v1/status"; looksUp != (responses["429"] != nil) {
				t.Errorf("%s: %v", path, responses)
			}
		}
	})
}

// isOpenAPI holds the document against the schema of OpenAPI 3.1.
func (a *api) isOpenAPI(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("testdata/openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	meta, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi-3.1.json", meta); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(a.document); err != nil {
		t.Error(err)
	}
	if schema.Validate(map[string]any{"openapi": "3.1.0"}) == nil {
		t.Error("a document without anything is valid")
	}
	for name := range a.document["components"].(map[string]any)["schemas"].(map[string]any) {
		part, pointer := a.at(t, "components", "schemas", name)
		if _, err := a.compiler.Compile("openapi.json" + pointer); err != nil || part["additionalProperties"] != false {
			t.Errorf("schema %s is open, or none: %v", name, err)
		}
	}
}

func (a *api) answersWell(t *testing.T) {
	t.Helper()
	a.ask(t, http.MethodGet, "/api/v1/openapi.json", "/api/v1/openapi.json", http.StatusOK)
	a.ask(t, http.MethodGet, "/api/v1/status", "/api/v1/status", http.StatusOK)
	if text := a.ask(t, http.MethodGet, "/api/v1/observers/{id}", "/api/v1/observers/orders", http.StatusOK); !strings.Contains(text, `"table":"orders"`) {
		t.Error(text)
	}
	all := a.list(t, "/api/v1/polls", "", 2)
	if one := a.list(t, "/api/v1/polls", "?limit=1", 1); len(one) != 1 {
		t.Errorf("%d of %d polls with limit=1", len(one), len(all))
	}
	for _, poll := range a.list(t, "/api/v1/polls", "?observer=stock&limit=1000", 1) {
		if poll["observer"] != "stock" {
			t.Error(poll)
		}
	}
	if held := a.list(t, "/api/v1/locks", "", 3); len(held) != 3 || held[0]["holder"] != "worker" {
		t.Error(held)
	}
	if held := a.list(t, "/api/v1/locks", "?lock=lock:shared:page:reading:doc-1", 2); len(held) != 2 {
		t.Error(held)
	}
	found := a.list(t, "/api/v1/events", "?observer=orders&limit=2", 2)
	if len(found) != 2 || fmt.Sprint(found[0]["sequence"]) <= fmt.Sprint(found[1]["sequence"]) {
		t.Errorf("not the two newest: %v", found)
	}
	for _, e := range found {
		if e["data"] != nil || e["data_base64"] != nil || e["subject"] == nil {
			t.Errorf("an event shows its row, or no subject: %v", e)
		}
	}
}

func (a *api) refuses(t *testing.T) {
	t.Helper()
	for _, tc := range []struct {
		operation, path string
		code            int
		says            string
	}{
		{"/api/v1/openapi.json", "/api/v1/openapi.json?x=1", 400, `"parameter":"x"`},
		{"/api/v1/status", "/api/v1/status?limit=1", 400, "no parameter is taken here"},
		{"/api/v1/observers/{id}", "/api/v1/observers/orders?a=b", 400, "no parameter is taken here"},
		{"/api/v1/observers/{id}", "/api/v1/observers/ordres", 404, "use orders"},
		{"/api/v1/observers/{id}", "/api/v1/observers/" + strings.Repeat("x", 3000), 404, "/api/v1/status lists them"},
		{"/api/v1/polls", "/api/v1/polls?observer=stokc", 404, "use stock"},
		{"/api/v1/polls", "/api/v1/polls?limt=3", 400, "use limit"},
		{"/api/v1/polls", "/api/v1/polls?limit=0", 400, "from 1 to 1000"},
		{"/api/v1/polls", "/api/v1/polls?limit=1001", 400, "from 1 to 1000"},
		{"/api/v1/polls", "/api/v1/polls?limit=%2B5", 400, "from 1 to 1000"},
		{"/api/v1/polls", "/api/v1/polls?limit=05", 400, "from 1 to 1000"},
		{"/api/v1/polls", "/api/v1/polls?limit=", 400, "empty or given twice"},
		{"/api/v1/polls", "/api/v1/polls?limit=1&limit=2", 400, "empty or given twice"},
		{"/api/v1/polls", "/api/v1/polls?observer=%zz", 400, "cannot be read"},
		{"/api/v1/polls", "/api/v1/polls?%ff%00=1", 400, "use observer or limit"},
		{"/api/v1/locks", "/api/v1/locks?lock=lock:nightly", 400, "lock:"},
		{"/api/v1/locks", "/api/v1/locks?lock=%00", 400, "lock"},
		{"/api/v1/locks", "/api/v1/locks?lock=%ff", 400, "lock"},
		{"/api/v1/locks", "/api/v1/locks?lock=lock:exclusive:page:reading:%00", 400, "lock"},
		{"/api/v1/locks", "/api/v1/locks?lock=lock:exclusive:page:reading:%ff", 400, "lock"},
		{"/api/v1/locks", "/api/v1/locks?lock=lock:excl:page:reading:x", 400, "lock"},
		{"/api/v1/locks", "/api/v1/locks?lock=lock:exclusive:page:reading:" + strings.Repeat("x", 5000), 400, "lock"},
		{"/api/v1/polls", "/api/v1/polls?observer=%00", 404, "there is no observer"},
		{"/api/v1/polls", "/api/v1/polls?observer=%ff", 404, "there is no observer"},
		{"/api/v1/polls", "/api/v1/polls?limit=99999999999999999999", 400, "use limit"},
		{"/api/v1/events", "/api/v1/events?observer=%00", 404, "there is no observer"},
		{"/api/v1/observers/{id}", "/api/v1/observers/%00", 404, "there is no observer"},
		{"/api/v1/observers/{id}", "/api/v1/observers/%ff", 404, "there is no observer"},
		{"/api/v1/observers/{id}", "/api/v1/observers/orders%2Fx", 404, "there is no observer"},
		{"/api/v1/events", "/api/v1/events", 400, "use observer=ID"},
		{"/api/v1/events", "/api/v1/events?observer=x%27--", 404, "there is no observer"},
		{"/api/v1/events", "/api/v1/events?observer=orders&type=order", 400, "no such parameter"},
		{"/api/v1/status", "/api/v1/stauts", 404, "openapi.json"},
	} {
		if tc.operation == "/api/v1/status" && tc.code == 404 {
			if code, text := get(t, a.node, tc.path); code != tc.code || !strings.Contains(text, tc.says) {
				t.Errorf("%s: %d %s", tc.path, code, text)
			}
			continue
		}
		if text := a.ask(t, http.MethodGet, tc.operation, tc.path, tc.code); !strings.Contains(text, tc.says) || len(text) > 500 {
			t.Errorf("%s: %q is missing in %s", tc.path, tc.says, text)
		}
	}
	a.ask(t, http.MethodPost, "/api/v1/status", "/api/v1/status", http.StatusMethodNotAllowed)
}

// TestAPIShowsRowsWhereItIsAskedTo has http.show-payload, on an address that other hosts can
// reach without a password and on one that they cannot.
func TestAPIShowsRowsWhereItIsAskedTo(t *testing.T) {
	t.Parallel()
	for listen, shown := range map[string]bool{"127.0.0.1:0": true, "0.0.0.0:0": false} {
		t.Run(listen, func(t *testing.T) {
			t.Parallel()
			p := setup(t, "")
			p.config.HTTP.Listen, p.config.HTTP.ShowPayload, p.config.HTTP.Insecure = listen, true, !shown
			if err := p.warehouse.Step(t.Context(), 50); err != nil {
				t.Fatal(err)
			}
			node := p.start(t)
			eventually(t, p.delivered(t, p.operator(t), "orders", 1))
			code, text := getLocally(t, node, "/api/v1/events?observer=orders&limit=1")
			if code != http.StatusOK || strings.Contains(text, `"data":{`) != shown {
				t.Errorf("%d %s", code, text)
			}
		})
	}
}

// TestAPIWithoutDatabase asks a node whose coordination database cannot be reached.
func TestAPIWithoutDatabase(t *testing.T) {
	t.Parallel()
	p := setup(t, "postgres://observerd:geheim@127.0.0.1:1/observerd?sslmode=disable&connect_timeout=1")
	a := newAPI(t, p.start(t))
	for operation, path := range map[string]string{
		"/api/v1/status": "/api/v1/status", "/api/v1/observers/{id}": "/api/v1/observers/orders", "/api/v1/polls": "/api/v1/polls",
		"/api/v1/locks": "/api/v1/locks", "/api/v1/events": "/api/v1/events?observer=orders",
	} {
		if text := a.ask(t, http.MethodGet, operation, path, http.StatusServiceUnavailable); strings.Contains(text, "geheim") || strings.Contains(text, "127.0.0.1:1") {
			t.Errorf("%s: %s", path, text)
		}
		name, _, _ := strings.Cut(path, "?")
		a.ask(t, http.MethodGet, operation, name+"?limt=1", http.StatusBadRequest)
	}
	a.ask(t, http.MethodGet, "/api/v1/locks", "/api/v1/locks?lock=lock:excl:page:reading:x", http.StatusBadRequest)
	a.ask(t, http.MethodGet, "/api/v1/events", "/api/v1/events", http.StatusBadRequest)
}
