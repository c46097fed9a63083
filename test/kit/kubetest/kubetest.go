// Package kubetest gives tests the endpoint of Leases that an API server of Kubernetes has, over
// HTTP and in this process: versions, preconditions, conflicts, lists by label, rights, and the
// form of the answers. Package kubeapitest has a real API server, with which the same tests pass.
package kubetest

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

// Admin is the user who may do everything. Others may do what [Server.Grant] has given them.
const Admin = "admin"

// Server is the endpoint.
type Server struct {
	*httptest.Server

	mu         sync.Mutex
	revision   int64
	leases     map[string]lease // by namespace and name
	namespaces map[string]bool
	// rights are VERB NAMESPACE USER.
	rights   map[string]bool
	requests int
}

// lease is what the endpoint knows of one.
type lease struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

type spec struct {
	HolderIdentity       *string `json:"holderIdentity,omitempty"`
	LeaseDurationSeconds *int32  `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          *string `json:"acquireTime,omitempty"`
	RenewTime            *string `json:"renewTime,omitempty"`
	LeaseTransitions     *int32  `json:"leaseTransitions,omitempty"`
}

// Start gives a test an endpoint of its own.
func Start(t testing.TB) *Server {
	s := &Server{leases: make(map[string]lease), namespaces: make(map[string]bool), rights: make(map[string]bool)}
	mux := http.NewServeMux()
	const all = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
	mux.HandleFunc("POST "+all, s.serve("create", s.create))
	mux.HandleFunc("GET "+all, s.serve("list", s.list))
	mux.HandleFunc("GET "+all+"/{name}", s.serve("get", s.get))
	mux.HandleFunc("PUT "+all+"/{name}", s.serve("update", s.update))
	mux.HandleFunc("DELETE "+all+"/{name}", s.serve("delete", s.remove))
	s.Server = httptest.NewTLSServer(mux) // A client sends no token without TLS.
	t.Cleanup(s.Close)
	return s
}

// Kubeconfig is the path of a kubeconfig of the user.
func (s *Server) Kubeconfig(t testing.TB, user string) string {
	return s.KubeconfigAt(t, s.Listener.Addr().String(), user)
}

// KubeconfigAt is that for another address, such as a proxy's.
func (s *Server) KubeconfigAt(t testing.TB, address, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"test",
"clusters":[{"name":"test","cluster":{"server":"https://%s","certificate-authority-data":%q}}],"users":[{"name":"test","user":{"token":%q}}],
"contexts":[{"name":"test","context":{"cluster":"test","user":"test"}}]}`, address, base64.StdEncoding.EncodeToString(ca), "token-"+user)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Namespace makes a namespace.
func (s *Server) Namespace(testing.TB) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("test-%d", len(s.namespaces))
	s.namespaces[name] = true
	return name
}

// Grant lets the user do that with Leases of the namespace.
func (s *Server) Grant(_ testing.TB, namespace, user string, verbs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, verb := range verbs {
		s.rights[verb+" "+namespace+" "+user] = true
	}
}

// Requests is how many requests there were.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Snapshot remembers all Leases. What it returns brings them back, as a restore of etcd does.
func (s *Server) Snapshot(testing.TB) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	leases, revision := maps.Clone(s.leases), s.revision
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leases, s.revision = maps.Clone(leases), revision
	}
}

// refusal is an answer that is a Status.
type refusal struct {
	code          int
	reason, words string
	kind, name    string
}

func (r refusal) write(w http.ResponseWriter) {
	write(w, r.code, map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": struct{}{}, "status": "Failure", "message": r.words, "reason": r.reason, "code": r.code,
		"details": map[string]string{"name": r.name, "group": "coordination.k8s.io", "kind": r.kind},
	})
}

func write(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // The client may be gone.
}

func ofLease(code int, reason, name, words string) *refusal {
	return &refusal{code, reason, fmt.Sprintf("leases.coordination.k8s.io %q %s", name, words), "leases", name}
}

// request is one about Leases of a namespace.
type request struct {
	*http.Request
	namespace, name string
	// dry is a request that is judged, and writes nothing.
	dry bool
}

// serve answers one request after the other, as etcd does for one Lease.
func (s *Server) serve(verb string, do func(request) (any, *refusal)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests++
		r := request{q, q.PathValue("namespace"), q.PathValue("name"), q.FormValue("dryRun") == "All"}
		user, known := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer token-")
		switch {
		case !known:
			refusal{http.StatusUnauthorized, "Unauthorized", "Unauthorized", "", ""}.write(w)
			return
		case user != Admin && !s.rights[verb+" "+r.namespace+" "+user]:
			ofLease(http.StatusForbidden, "Forbidden", r.name, fmt.Sprintf("is forbidden: User %q cannot %s resource \"leases\" in the namespace %q", user, verb, r.namespace)).write(w)
			return
		}
		answer, refused := do(r)
		switch {
		case refused != nil:
			refused.write(w)
		case verb == "create":
			write(w, http.StatusCreated, answer)
		default:
			write(w, http.StatusOK, answer)
		}
	}
}

var subdomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// body reads the Lease of a request, and judges it.
func (r request) body() (l lease, refused *refusal) {
	if err := json.NewDecoder(r.Body).Decode(&l); err != nil {
		return l, &refusal{http.StatusBadRequest, "BadRequest", err.Error(), "", ""}
	}
	l.Metadata.Namespace = r.namespace
	switch {
	case !subdomain.MatchString(l.Metadata.Name), r.name != "" && l.Metadata.Name != r.name:
		return l, ofLease(http.StatusUnprocessableEntity, "Invalid", l.Metadata.Name, "is invalid: metadata.name")
	case l.Spec.LeaseDurationSeconds != nil && *l.Spec.LeaseDurationSeconds <= 0, l.Spec.LeaseTransitions != nil && *l.Spec.LeaseTransitions < 0,
		l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == "":
		return l, ofLease(http.StatusUnprocessableEntity, "Invalid", l.Metadata.Name, "is invalid: spec")
	}
	return l, nil
}

// store writes a Lease that was judged.
func (s *Server) store(r request, l lease) lease {
	if r.dry {
		return l
	}
	s.revision++
	l.Metadata.ResourceVersion = strconv.FormatInt(s.revision, 10)
	s.leases[r.namespace+"/"+l.Metadata.Name] = l
	return l
}

func (s *Server) create(r request) (any, *refusal) {
	l, refused := r.body()
	if refused != nil {
		return nil, refused
	}
	if !s.namespaces[r.namespace] {
		return nil, &refusal{http.StatusNotFound, "NotFound", fmt.Sprintf("namespaces %q not found", r.namespace), "namespaces", r.namespace}
	}
	if _, there := s.leases[r.namespace+"/"+l.Metadata.Name]; there {
		return nil, ofLease(http.StatusConflict, "AlreadyExists", l.Metadata.Name, "already exists")
	}
	l.Metadata.UID = uuid.NewString()
	return s.store(r, l), nil
}

func (s *Server) get(r request) (any, *refusal) {
	l, there := s.leases[r.namespace+"/"+r.name]
	if !there {
		return nil, ofLease(http.StatusNotFound, "NotFound", r.name, "not found")
	}
	return l, nil
}

// matches returns a conflict unless the stored Lease is that of the preconditions.
func (l lease) matches(uid, version string) *refusal {
	if uid != "" && uid != l.Metadata.UID || version != "" && version != l.Metadata.ResourceVersion {
		return ofLease(http.StatusConflict, "Conflict", l.Metadata.Name, "has another version")
	}
	return nil
}

func (s *Server) update(r request) (any, *refusal) {
	l, refused := r.body()
	if refused != nil {
		return nil, refused
	}
	before, there := s.leases[r.namespace+"/"+r.name]
	if !there && l.Metadata.UID != "" {
		return nil, ofLease(http.StatusConflict, "Conflict", r.name, "is gone")
	}
	if !there {
		return nil, ofLease(http.StatusNotFound, "NotFound", r.name, "not found")
	}
	if l.Metadata.ResourceVersion == "" {
		return nil, ofLease(http.StatusUnprocessableEntity, "Invalid", r.name, "is invalid: metadata.resourceVersion: must be specified for an update")
	}
	if refused := before.matches(l.Metadata.UID, l.Metadata.ResourceVersion); refused != nil {
		return nil, refused
	}
	l.Metadata.UID = before.Metadata.UID
	if reflect.DeepEqual(l, before) { // Nothing is written, and the version stays.
		return before, nil
	}
	return s.store(r, l), nil
}

func (s *Server) remove(r request) (any, *refusal) {
	var options struct {
		Preconditions struct{ UID, ResourceVersion string }
		DryRun        []string
	}
	_ = json.NewDecoder(r.Body).Decode(&options) // There may be none.
	l, there := s.leases[r.namespace+"/"+r.name]
	if !there {
		return nil, ofLease(http.StatusNotFound, "NotFound", r.name, "not found")
	}
	if refused := l.matches(options.Preconditions.UID, options.Preconditions.ResourceVersion); refused != nil {
		return nil, refused
	}
	if !r.dry && len(options.DryRun) == 0 {
		s.revision++
		delete(s.leases, r.namespace+"/"+r.name)
	}
	return map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": struct{}{}, "status": "Success"}, nil
}

func (s *Server) list(r request) (any, *refusal) {
	name, value, _ := strings.Cut(r.FormValue("labelSelector"), "=")
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	items, next := []lease{}, ""
	for _, key := range slices.Sorted(maps.Keys(s.leases)) {
		l := s.leases[key]
		if l.Metadata.Namespace != r.namespace || key <= r.FormValue("continue") || name != "" && l.Metadata.Labels[name] != value {
			continue
		}
		if limit > 0 && len(items) == limit {
			next = r.namespace + "/" + items[limit-1].Metadata.Name
			break
		}
		items = append(items, l)
	}
	return map[string]any{
		"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": items,
		"metadata": map[string]string{"resourceVersion": strconv.FormatInt(s.revision, 10), "continue": next},
	}, nil
}
