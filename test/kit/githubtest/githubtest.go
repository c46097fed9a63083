// Package githubtest gives tests the endpoint of one repository that GitHub's REST API has, over
// HTTP and in this process: references, commits, issues, comments, labels, assignees, rights,
// pages, conditional requests and limits. Every request and every answer is held against
// GitHub's own description of the operation; what breaks it fails the test.
package githubtest

import (
	"crypto/sha1" //nolint:gosec // Objects of git are named by it.
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Repository is the repository of the endpoint.
const Repository = "acme/tasks"

const prefix = "/api/v3"

// Rights is what a token may do with the repository.
type Rights int

const (
	// None does not see the repository.
	None Rights = iota
	// Read reads all.
	Read
	// Issues writes issues and comments, and does not push. Its assignments are ignored.
	Issues
	// Push writes all.
	Push
	// Installation is that of an app: it writes all, is no user, and cannot be assigned.
	Installation
)

// Fault is what a request suffers. The zero Fault is none.
type Fault struct {
	// Status answers instead of carrying out, with Header and Body.
	Status int
	Header http.Header
	Body   string
	// Lost carries out, and closes the connection without an answer. The transport of Go may
	// repeat a GET then, unseen by its client.
	Lost bool
	// Late carries out when it is closed, even if the client has gone.
	Late <-chan struct{}
}

// Server is the endpoint.
type Server struct {
	broken func(format string, args ...any)
	http   *httptest.Server
	ended  chan struct{}

	mu       sync.Mutex
	accounts map[string]account // by token
	commits  map[string]commit  // by SHA
	refs     map[string]string  // SHA by full name
	issues   []*issue           // by number - 1
	comments []*comment         // by ID
	ids      int                // of comments

	empty, archived, refusing bool

	requests []string
	fail     func(*http.Request) Fault
	limit    int
	reset    time.Time
}

type account struct {
	login  string
	id     int
	rights Rights
}

type issue struct {
	number            int
	title, body       string
	closed, locked    bool
	pull              bool
	labels, assignees []string
	created, updated  time.Time
}

type comment struct {
	id, issue        int
	author, body     string
	created, updated time.Time
}

// Start starts the endpoint, whose repository has one commit on main and no issues, and ends
// it with the test.
func Start(t testing.TB) *Server {
	s := Open(t.Errorf)
	t.Cleanup(s.End)
	return s
}

// Open starts the endpoint for a program, which is told what breaks the description.
func Open(broken func(format string, args ...any)) *Server {
	described()
	s := &Server{
		broken:   broken,
		ended:    make(chan struct{}),
		accounts: make(map[string]account),
		commits:  make(map[string]commit),
		refs:     make(map[string]string),
		limit:    5000,
		reset:    time.Now().Add(time.Hour),
	}
	by := signature{Name: "acme", Email: "acme@example.com", Date: now()}
	s.refs["refs/heads/main"] = s.store(commit{Tree: emptyTree, Author: by, Committer: by, Message: "Begin"})
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// End ends the endpoint.
func (s *Server) End() {
	close(s.ended)
	s.http.Close()
}

// URL is the address below which the API has /api/v3/, as a GitHub Enterprise Server has.
func (s *Server) URL() string { return s.http.URL }

// Token registers an account, and returns a token of it with these rights.
func (s *Server) Token(login string, r Rights) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == Installation && !strings.HasSuffix(login, "[bot]") {
		login += "[bot]"
	}
	id := len(s.accounts) + 1
	for _, a := range s.accounts {
		if strings.EqualFold(a.login, login) {
			id = a.id
		}
	}
	token := fmt.Sprintf("ghp_%036d", len(s.accounts)+1)
	s.accounts[token] = account{login: login, id: id, rights: r}
	return token
}

// Issue opens an issue, and returns its number.
func (s *Server) Issue(title string, labels ...string) int {
	return s.open(issue{title: title, labels: labels})
}

// PullRequest opens one, and returns its number, which is that of an issue, too.
func (s *Server) PullRequest(labels ...string) int {
	return s.open(issue{title: "Change", pull: true, labels: labels})
}

func (s *Server) open(i issue) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	i.number, i.created, i.updated = len(s.issues)+1, now(), now()
	s.issues = append(s.issues, &i)
	return i.number
}

// locked reads or changes the state between two requests.
func (s *Server) locked(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// edit changes an issue.
func (s *Server) edit(n int, change func(*issue)) {
	s.locked(func() {
		change(s.issues[n-1])
		s.issues[n-1].updated = now()
	})
}

// Close closes an issue.
func (s *Server) Close(n int) { s.edit(n, func(i *issue) { i.closed = true }) }

// Lock locks the conversation of an issue: new comments are refused.
func (s *Server) Lock(n int) { s.edit(n, func(i *issue) { i.locked = true }) }

// Assign assigns an issue to a login, whatever rights it has.
func (s *Server) Assign(n int, login string) {
	s.edit(n, func(i *issue) { i.assignees = append(i.assignees, login) })
}

// Unassign takes an issue from a login.
func (s *Server) Unassign(n int, login string) {
	s.edit(n, func(i *issue) { i.assignees = without(i.assignees, []string{login}) })
}

// DeleteComments deletes the comments of an issue.
func (s *Server) DeleteComments(n int) {
	s.edit(n, func(*issue) {
		s.comments = slices.DeleteFunc(s.comments, func(c *comment) bool { return c.issue == n })
	})
}

// Assignees are the logins to which an issue is assigned.
func (s *Server) Assignees(n int) (logins []string) {
	s.locked(func() { logins = slices.Clone(s.issues[n-1].assignees) })
	return logins
}

// Labels are those of an issue.
func (s *Server) Labels(n int) (names []string) {
	s.locked(func() { names = slices.Clone(s.issues[n-1].labels) })
	return names
}

// Comment writes a comment to an issue.
func (s *Server) Comment(n int, login, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(n, login, body)
}

// Comments are the texts of an issue's comments, the oldest first.
func (s *Server) Comments(n int) (bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.comments {
		if c.issue == n {
			bodies = append(bodies, c.body)
		}
	}
	return bodies
}

// State is "open" or "closed".
func (s *Server) State(n int) (state string) {
	s.locked(func() { state = s.issues[n-1].state() })
	return state
}

// Empty takes all commits and references: the repository was never pushed to.
func (s *Server) Empty() {
	s.locked(func() {
		s.empty = true
		clear(s.commits)
		clear(s.refs)
	})
}

// Archive makes the repository read-only.
func (s *Server) Archive() { s.locked(func() { s.archived = true }) }

// RefuseNamespace refuses to create references that are neither branches nor tags.
func (s *Server) RefuseNamespace() { s.locked(func() { s.refusing = true }) }

// Ref is the SHA of a reference, which is named with or without refs/; "" if there is none.
func (s *Server) Ref(name string) (sha string) {
	s.locked(func() { sha = s.refs["refs/"+strings.TrimPrefix(name, "refs/")] })
	return sha
}

// Message is that of a commit.
func (s *Server) Message(sha string) (message string) {
	s.locked(func() { message = s.commits[sha].Message })
	return message
}

// Chain is how many commits there are from this one to the root, along the first parents.
func (s *Server) Chain(sha string) (length int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		c, known := s.commits[sha]
		if !known {
			return length
		}
		length++
		if len(c.Parents) == 0 {
			return length
		}
		sha = c.Parents[0]
	}
}

// Requests are the requests since the start or [Server.Forget], as METHOD and path below the repository.
func (s *Server) Requests() (all []string) {
	s.locked(func() { all = slices.Clone(s.requests) })
	return all
}

// Writes are those of the requests that are not GET.
func (s *Server) Writes() []string {
	return slices.DeleteFunc(s.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET ") })
}

// Forget forgets the requests so far.
func (s *Server) Forget() { s.locked(func() { s.requests = nil }) }

// Fail asks f for the fault of each request. Nil ends it. The body of the request can be read.
func (s *Server) Fail(f func(r *http.Request) Fault) { s.locked(func() { s.fail = f }) }

// Limit leaves so many requests of the hour.
func (s *Server) Limit(requests int) {
	s.locked(func() { s.limit, s.reset = requests, time.Now().Add(time.Hour) })
}

// now is the time as GitHub has it, in whole seconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// hash names an object as git does.
func hash(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // Objects of git are named by it.
	return hex.EncodeToString(sum[:])
}

// serve lets the request suffer its fault, and carries it out.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	path := strings.TrimPrefix(r.URL.Path, prefix)
	var fail func(*http.Request) Fault
	s.locked(func() {
		s.requests = append(s.requests, r.Method+" "+strings.TrimPrefix(path, "/repos/"+Repository))
		fail = s.fail
	})
	var fault Fault
	if fail != nil {
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		fault = fail(r)
	}
	if fault.Status != 0 {
		for name, values := range fault.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(fault.Status)
		_, _ = io.WriteString(w, fault.Body) // The client may be gone.
		return
	}
	if fault.Late != nil {
		select {
		case <-fault.Late:
		case <-s.ended:
			return
		}
	}
	q := &call{Server: s, request: r, path: path, body: body, header: w.Header()}
	status, answer := q.judge()
	if fault.Lost {
		panic(http.ErrAbortHandler) // It closes the connection.
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer) // The client may be gone.
}

// call is a request that is carried out.
type call struct {
	*Server
	request *http.Request
	path    string
	values  map[string]string // of the path
	body    []byte
	header  http.Header // of the answer
	account account
	*operation
}

func (q *call) number(name string) int {
	n, _ := strconv.Atoi(q.values[name]) // The path has digits there.
	return n
}

// judge carries out one request after the other. It holds the request and its answer
// against the description.
func (q *call) judge() (int, []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.operation, q.values = described().find(q.request.Method, q.path)
	if q.operation == nil {
		q.broken("%s %s: is none of the operations of testdata/openapi.json", q.request.Method, q.path)
		return http.StatusNotFound, []byte(`{"message":"Not Found"}`)
	}
	broken := q.operation.request(q.request.URL.Query(), q.body)
	if broken != nil {
		q.broken("%s %s: request: %v", q.request.Method, q.path, broken)
	}
	status, answer := q.authorize(broken)
	q.header.Set("Content-Type", "application/json; charset=utf-8")
	text, err := []byte(nil), error(nil)
	if status != http.StatusNoContent {
		text, err = q.render(status, answer)
	}
	if err == nil {
		err = q.answer(status, text)
	}
	if err != nil {
		q.broken("%s %s: answer: %d: %v in %s", q.request.Method, q.path, status, err, text)
	}
	counts := status != http.StatusUnauthorized
	if q.method == http.MethodGet && status == http.StatusOK {
		tag := `"` + hash(string(text)+q.account.login) + `"`
		q.header.Set("ETag", "W/"+tag)
		if strings.Contains(q.request.Header.Get("If-None-Match"), tag) {
			status, text, counts = http.StatusNotModified, nil, false
		}
	}
	if counts && q.limit > 0 {
		q.limit--
	}
	for name, value := range map[string]int{"Limit": 5000, "Remaining": q.limit, "Used": max(0, 5000-q.limit), "Reset": int(q.reset.Unix())} {
		q.header.Set("X-Ratelimit-"+name, strconv.Itoa(value))
	}
	q.header.Set("X-Ratelimit-Resource", "core")
	return status, text
}

// authorize refuses what the token may not, and carries out the rest.
func (q *call) authorize(broken error) (int, any) {
	_, token, _ := strings.Cut(q.request.Header.Get("Authorization"), " ")
	account, known := q.accounts[token]
	q.account = account
	write := q.method != http.MethodGet
	switch {
	case !known:
		return refuse(http.StatusUnauthorized, "Bad credentials")
	case q.limit <= 0:
		return refuse(http.StatusForbidden, "API rate limit exceeded for user ID %d.", q.account.id)
	case broken != nil && write:
		return refuse(http.StatusUnprocessableEntity, "Invalid request.")
	case q.path == "/user":
		if q.account.rights == Installation {
			return refuse(http.StatusForbidden, "Resource not accessible by integration")
		}
		return http.StatusOK, user(q.account.login, q.account.id)
	case !strings.EqualFold(q.values["owner"]+"/"+q.values["repo"], Repository), q.account.rights == None:
		return refuse(http.StatusNotFound, "Not Found")
	case write && q.archived:
		return refuse(http.StatusForbidden, "Repository was archived so is read-only.")
	case write && q.account.rights < Issues, write && q.account.rights < Push && strings.Contains(q.name, "/git/"):
		return refuse(http.StatusForbidden, "Resource not accessible by personal access token")
	case q.empty && (strings.Contains(q.name, "/git/") || strings.Contains(q.name, "/commits/")):
		return refuse(http.StatusConflict, "Git Repository is empty.")
	}
	return q.carryOut()
}

// refuse is the answer of a refusal.
func refuse(status int, words string, arguments ...any) (int, any) {
	return status, object{"message": fmt.Sprintf(words, arguments...), "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)}
}
