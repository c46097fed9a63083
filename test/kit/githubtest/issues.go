package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// carryOut does what the operation is for. The right to it is there.
func (q *call) carryOut() (int, any) {
	const comments, assignees = "/repos/{owner}/{repo}/issues/comments", "/repos/{owner}/{repo}/issues/{issue_number}/assignees"
	switch q.name {
	case "GET /repos/{owner}/{repo}":
		return q.repository()
	case "GET /repos/{owner}/{repo}/commits/{ref}":
		return q.getCommitOf()
	case "GET /repos/{owner}/{repo}/git/ref/{ref}":
		return q.getRef()
	case "GET /repos/{owner}/{repo}/git/matching-refs/{ref}":
		return q.matchingRefs()
	case "POST /repos/{owner}/{repo}/git/refs":
		return q.createRef()
	case "PATCH /repos/{owner}/{repo}/git/refs/{ref}":
		return q.updateRef()
	case "POST /repos/{owner}/{repo}/git/commits":
		return q.createCommit()
	case "GET /repos/{owner}/{repo}/git/commits/{commit_sha}":
		return q.getCommit()
	case "GET /repos/{owner}/{repo}/issues":
		return q.listIssues()
	case "GET " + comments:
		return q.listComments(func(*comment) bool { return true })
	case "GET " + comments + "/{comment_id}", "PATCH " + comments + "/{comment_id}", "DELETE " + comments + "/{comment_id}":
		return q.oneComment()
	}
	n := q.number("issue_number")
	if n < 1 || n > len(q.issues) {
		return refuse(http.StatusNotFound, "Not Found")
	}
	i := q.issues[n-1]
	switch q.name {
	case "GET /repos/{owner}/{repo}/issues/{issue_number}":
		return http.StatusOK, q.issue(i)
	case "PATCH /repos/{owner}/{repo}/issues/{issue_number}":
		return q.updateIssue(i)
	case "POST " + assignees, "DELETE " + assignees:
		return q.assignees(i)
	case "GET /repos/{owner}/{repo}/issues/{issue_number}/comments":
		return q.listComments(func(c *comment) bool { return c.issue == n })
	case "POST /repos/{owner}/{repo}/issues/{issue_number}/comments":
		return q.createComment(i)
	default:
		return q.labels(i)
	}
}

func (q *call) decode(body any) { _ = json.Unmarshal(q.body, body) } // Its schema was checked.

// address is that of a thing of the repository.
func (s *Server) address(path string) string {
	return s.http.URL + prefix + "/repos/" + Repository + path
}

// since is the parameter; it is zero if there is none.
func (q *call) since() time.Time {
	since, _ := time.Parse(time.RFC3339, q.request.FormValue("since")) // The schema has checked it.
	return since
}

// page cuts the page that was asked for out of the items, and adds the links to others.
func page[T any](q *call, items []T) []T {
	query := q.request.URL.Query()
	size, _ := strconv.Atoi(query.Get("per_page"))
	if size <= 0 {
		size = 30
	}
	size = min(size, 100)
	n, _ := strconv.Atoi(query.Get("page"))
	n = max(n, 1)
	last := (len(items) + size - 1) / size
	var links []string
	link := func(relation string, page int) {
		query.Set("page", strconv.Itoa(page))
		links = append(links, fmt.Sprintf(`<%s%s?%s>; rel="%s"`, q.http.URL, q.request.URL.Path, query.Encode(), relation))
	}
	if n > 1 {
		link("prev", n-1)
	}
	if n < last {
		link("next", n+1)
		link("last", last)
	}
	if n > 1 {
		link("first", 1)
	}
	if links != nil {
		q.header.Set("Link", strings.Join(links, ", "))
	}
	return items[min((n-1)*size, len(items)):min(n*size, len(items))]
}

func user(login string, id int) object {
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	return object{"login": login, "id": id, "node_id": fmt.Sprint("U_", id), "type": kind}
}

// user is a registered account, or one that a test has made up.
func (s *Server) user(login string) object {
	for _, a := range s.accounts {
		if strings.EqualFold(a.login, login) {
			return user(a.login, a.id)
		}
	}
	return user(login, 1000)
}

func (q *call) repository() (int, any) {
	push := q.account.rights >= Push
	return http.StatusOK, object{
		"id": 1, "name": "tasks", "full_name": Repository, "owner": user("acme", 999), "url": q.address(""), "default_branch": "main",
		"private": true, "archived": q.archived, "has_issues": true,
		"permissions": object{"admin": false, "maintain": false, "push": push, "triage": push, "pull": true},
	}
}

func (i *issue) state() string {
	if i.closed {
		return "closed"
	}
	return "open"
}

func labels(names []string) []object {
	all := []object{}
	for i, name := range names {
		all = append(all, object{"id": i + 1, "node_id": "LA_" + name, "name": name, "color": "ededed"})
	}
	return all
}

func (s *Server) issue(i *issue) object {
	url, assignees, comments := s.address(fmt.Sprint("/issues/", i.number)), []object{}, 0
	for _, login := range i.assignees {
		assignees = append(assignees, s.user(login))
	}
	for _, c := range s.comments {
		if c.issue == i.number {
			comments++
		}
	}
	o := object{
		"id": 1000 + i.number, "node_id": fmt.Sprint("I_", i.number), "number": i.number, "url": url, "html_url": url, "comments_url": url + "/comments",
		"repository_url": s.address(""), "title": i.title, "body": i.body, "state": i.state(), "locked": i.locked, "user": user("acme", 999),
		"labels": labels(i.labels), "assignees": assignees, "comments": comments, "created_at": i.created, "updated_at": i.updated,
	}
	if i.closed {
		o["closed_at"] = i.updated
	}
	if len(assignees) > 0 {
		o["assignee"] = assignees[0]
	}
	if i.pull {
		pull := s.address(fmt.Sprint("/pulls/", i.number))
		o["pull_request"] = object{"url": pull, "html_url": pull, "diff_url": pull, "patch_url": pull}
	}
	return o
}

func (q *call) listIssues() (int, any) {
	form := q.request.FormValue
	assignee := form("assignee")
	if assignee != "" && assignee != "*" && assignee != "none" && q.login(assignee) == "" {
		return refuse(http.StatusUnprocessableEntity, "Validation Failed")
	}
	found := []*issue{}
	for _, i := range q.issues {
		fits := (form("state") == "all" || i.closed == (form("state") == "closed")) && !i.updated.Before(q.since())
		switch assignee {
		case "":
		case "*":
			fits = fits && len(i.assignees) > 0
		case "none":
			fits = fits && len(i.assignees) == 0
		default:
			fits = fits && has(i.assignees, assignee)
		}
		for _, label := range strings.Split(form("labels"), ",") {
			fits = fits && (label == "" || has(i.labels, strings.TrimSpace(label)))
		}
		if fits {
			found = append(found, i)
		}
	}
	counts := make(map[int]int)
	for _, c := range q.comments {
		counts[c.issue]++
	}
	slices.SortStableFunc(found, func(a, b *issue) int {
		order := a.number - b.number
		switch form("sort") {
		case "updated":
			if c := a.updated.Compare(b.updated); c != 0 {
				order = c
			}
		case "comments":
			if c := counts[a.number] - counts[b.number]; c != 0 {
				order = c
			}
		}
		if form("direction") != "asc" {
			return -order
		}
		return order
	})
	all := []object{}
	for _, i := range page(q, found) {
		all = append(all, q.issue(i))
	}
	return http.StatusOK, all
}

// has and without compare logins and labels as GitHub does.
func has(names []string, name string) bool {
	return slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) })
}

func without(names, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return has(gone, name) })
}

// login is an account that an issue can be assigned to, as it writes itself; "" if there is none.
func (s *Server) login(login string) string {
	for _, a := range s.accounts {
		if strings.EqualFold(a.login, login) && a.rights != None && a.rights != Installation {
			return a.login
		}
	}
	return ""
}

// add adds those to whom an issue can be assigned, ten in all. It ignores others.
func (s *Server) add(assignees, logins []string) []string {
	for _, login := range logins {
		if login = s.login(login); login != "" && !has(assignees, login) && len(assignees) < 10 {
			assignees = append(assignees, login)
		}
	}
	return assignees
}

func (q *call) assignees(i *issue) (int, any) {
	var body struct{ Assignees []string }
	q.decode(&body)
	assignees, status := q.add(slices.Clone(i.assignees), body.Assignees), http.StatusCreated
	if q.method == http.MethodDelete {
		assignees, status = without(i.assignees, body.Assignees), http.StatusOK
	}
	if q.account.rights >= Push && !slices.Equal(assignees, i.assignees) {
		i.assignees, i.updated = assignees, now()
	}
	return status, q.issue(i)
}

func (q *call) updateIssue(i *issue) (int, any) {
	var body struct {
		Title, Body, State *string
		Labels, Assignees  *[]string
	}
	q.decode(&body)
	if body.Title != nil {
		i.title = *body.Title
	}
	if body.Body != nil {
		i.body = *body.Body
	}
	if body.State != nil {
		i.closed = *body.State == "closed"
	}
	if body.Labels != nil && q.account.rights >= Push { // Without push they are ignored.
		i.labels = *body.Labels
	}
	if body.Assignees != nil && q.account.rights >= Push {
		i.assignees = q.add(nil, *body.Assignees)
	}
	i.updated = now()
	return http.StatusOK, q.issue(i)
}

func (q *call) labels(i *issue) (int, any) {
	if q.account.rights < Push {
		return refuse(http.StatusForbidden, "Must have admin rights to Repository.")
	}
	if q.method == http.MethodDelete {
		if !has(i.labels, q.values["name"]) {
			return refuse(http.StatusNotFound, "Label does not exist")
		}
		i.labels = without(i.labels, []string{q.values["name"]})
	} else {
		var body struct{ Labels []string }
		q.decode(&body)
		q.decode(&body.Labels) // The bare list.
		for _, label := range body.Labels {
			if !has(i.labels, label) {
				i.labels = append(i.labels, label)
			}
		}
	}
	i.updated = now()
	return http.StatusOK, labels(i.labels)
}

func (s *Server) comment(c *comment) object {
	url := s.address(fmt.Sprint("/issues/comments/", c.id))
	return object{
		"id": c.id, "node_id": fmt.Sprint("IC_", c.id), "url": url, "html_url": url, "issue_url": s.address(fmt.Sprint("/issues/", c.issue)), "user": s.user(c.author),
		"body": c.body, "created_at": c.created, "updated_at": c.updated, "author_association": "MEMBER",
	}
}

// listComments lists by ID. Those of the repository can be sorted by time.
func (q *call) listComments(of func(*comment) bool) (int, any) {
	found := slices.DeleteFunc(slices.Clone(q.comments), func(c *comment) bool { return !of(c) || c.updated.Before(q.since()) })
	by := q.request.FormValue("sort")
	slices.SortStableFunc(found, func(a, b *comment) int {
		order := a.id - b.id
		if c := a.updated.Compare(b.updated); by == "updated" && c != 0 {
			order = c
		}
		if by != "" && q.request.FormValue("direction") != "asc" {
			return -order
		}
		return order
	})
	all := []object{}
	for _, c := range page(q, found) {
		all = append(all, q.comment(c))
	}
	return http.StatusOK, all
}

func (q *call) createComment(i *issue) (int, any) {
	var body struct{ Body string }
	q.decode(&body)
	switch {
	case i.locked:
		return refuse(http.StatusForbidden, "Unable to create comment because issue is locked.")
	case strings.TrimSpace(body.Body) == "" || len(body.Body) > 65536:
		return refuse(http.StatusUnprocessableEntity, "Validation Failed")
	}
	return http.StatusCreated, q.comment(q.say(i.number, q.account.login, body.Body))
}

func (s *Server) say(issue int, login, body string) *comment {
	s.ids++
	c := &comment{id: s.ids, issue: issue, author: login, body: body, created: now(), updated: now()}
	s.comments, s.issues[issue-1].updated = append(s.comments, c), now()
	return c
}

// oneComment reads, changes or deletes a comment.
func (q *call) oneComment() (int, any) {
	at := slices.IndexFunc(q.comments, func(c *comment) bool { return c.id == q.number("comment_id") })
	if at < 0 {
		return refuse(http.StatusNotFound, "Not Found")
	}
	c := q.comments[at]
	switch {
	case q.method != http.MethodGet && q.account.rights < Push && !strings.EqualFold(c.author, q.account.login):
		return refuse(http.StatusForbidden, "Must have admin rights to Repository.")
	case q.method == http.MethodDelete:
		q.comments = slices.Delete(q.comments, at, at+1)
		return http.StatusNoContent, nil
	case q.method == http.MethodPatch:
		var body struct{ Body string }
		q.decode(&body)
		c.body, c.updated = body.Body, now()
	}
	return http.StatusOK, q.comment(c)
}
