package githubtest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// emptyTree is the tree that every repository has.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

type commit struct {
	Tree, Message     string
	Parents           []string
	Author, Committer signature
}

type signature struct {
	Name  string    `json:"name"`
	Email string    `json:"email"`
	Date  time.Time `json:"date"`
}

func (g signature) line() string {
	return fmt.Sprintf("%s <%s> %d +0000\n", g.Name, g.Email, g.Date.Unix())
}

// store keeps a commit under the SHA that git would give it.
func (s *Server) store(c commit) string {
	text := "tree " + c.Tree + "\n"
	for _, parent := range c.Parents {
		text += "parent " + parent + "\n"
	}
	text += "author " + c.Author.line() + "committer " + c.Committer.line() + "\n" + c.Message
	sha := hash(fmt.Sprintf("commit %d\x00%s", len(text), text))
	s.commits[sha] = c
	return sha
}

// descends is whether one commit has the other among its ancestors, or is it.
func (s *Server) descends(sha, ancestor string) bool {
	return sha == ancestor || slices.ContainsFunc(s.commits[sha].Parents, func(parent string) bool { return s.descends(parent, ancestor) })
}

func (s *Server) reference(name string) object {
	return object{
		"ref":     name,
		"node_id": "REF_" + name,
		"url":     s.address("/git/" + name),
		"object":  object{"type": "commit", "sha": s.refs[name], "url": s.address("/git/commits/" + s.refs[name])},
	}
}

func (q *call) getRef() (int, any) {
	name := "refs/" + q.values["ref"]
	if q.refs[name] == "" {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return http.StatusOK, q.reference(name)
}

// matchingRefs has no pages: GitHub describes none, and gives none
// (https://github.com/google/go-github/issues/1567).
func (q *call) matchingRefs() (int, any) {
	found := []object{}
	for _, name := range slices.Sorted(maps.Keys(q.refs)) {
		if strings.HasPrefix(name, "refs/"+q.values["ref"]) {
			found = append(found, q.reference(name))
		}
	}
	return http.StatusOK, found
}

func (q *call) createRef() (int, any) {
	var body struct{ Ref, SHA string }
	q.decode(&body)
	switch {
	case !strings.HasPrefix(body.Ref, "refs/") || strings.Count(body.Ref, "/") < 2 || strings.HasSuffix(body.Ref, "/"):
		return refuse(http.StatusUnprocessableEntity, "Reference name must start with 'refs/' and have two slashes.")
	case q.refs[body.Ref] != "":
		return refuse(http.StatusUnprocessableEntity, "Reference already exists")
	case q.commits[body.SHA].Tree == "":
		return refuse(http.StatusUnprocessableEntity, "Object does not exist")
	case q.refusing && !strings.HasPrefix(body.Ref, "refs/heads/") && !strings.HasPrefix(body.Ref, "refs/tags/"):
		return refuse(http.StatusUnprocessableEntity, "Reference update failed")
	}
	for name := range q.refs { // One cannot be a folder of another.
		if strings.HasPrefix(name, body.Ref+"/") || strings.HasPrefix(body.Ref, name+"/") {
			return refuse(http.StatusUnprocessableEntity, "Reference update failed")
		}
	}
	q.refs[body.Ref] = body.SHA
	return http.StatusCreated, q.reference(body.Ref)
}

func (q *call) updateRef() (int, any) {
	var body struct {
		SHA   string
		Force bool
	}
	q.decode(&body)
	name := "refs/" + q.values["ref"]
	switch {
	case q.refs[name] == "":
		return refuse(http.StatusUnprocessableEntity, "Reference does not exist")
	case q.commits[body.SHA].Tree == "":
		return refuse(http.StatusUnprocessableEntity, "Object does not exist")
	case !body.Force && !q.descends(body.SHA, q.refs[name]):
		return refuse(http.StatusUnprocessableEntity, "Update is not a fast forward")
	}
	q.refs[name] = body.SHA
	return http.StatusOK, q.reference(name)
}

func (q *call) createCommit() (int, any) {
	var body struct {
		Message, Tree     string
		Parents           []string
		Author, Committer *signature
	}
	q.decode(&body)
	tree := body.Tree == emptyTree
	for _, c := range q.commits {
		tree = tree || c.Tree == body.Tree
	}
	if !tree {
		return refuse(http.StatusUnprocessableEntity, "Tree SHA does not exist")
	}
	for _, parent := range body.Parents {
		if q.commits[parent].Tree == "" {
			return refuse(http.StatusUnprocessableEntity, "Parent SHA does not exist or is not a commit object")
		}
	}
	by := signature{Name: q.account.login, Email: q.account.login + "@users.noreply.github.com"}
	if body.Author != nil {
		by = *body.Author
	}
	if by.Date.IsZero() {
		by.Date = now()
	}
	c := commit{Tree: body.Tree, Message: body.Message, Parents: body.Parents, Author: by, Committer: by}
	if body.Committer != nil {
		c.Committer = *body.Committer
		if c.Committer.Date.IsZero() {
			c.Committer.Date = by.Date
		}
	}
	c.Author.Date, c.Committer.Date = c.Author.Date.UTC().Truncate(time.Second), c.Committer.Date.UTC().Truncate(time.Second)
	return http.StatusCreated, q.commit(q.store(c))
}

// commit is a commit of the git data API.
func (s *Server) commit(sha string) object {
	c, parents := s.commits[sha], []object{}
	for _, parent := range c.Parents {
		parents = append(parents, object{"sha": parent, "url": s.address("/git/commits/" + parent)})
	}
	return object{
		"sha":          sha,
		"node_id":      "C_" + sha,
		"url":          s.address("/git/commits/" + sha),
		"author":       c.Author,
		"committer":    c.Committer,
		"tree":         object{"sha": c.Tree, "url": s.address("/git/trees/" + c.Tree)},
		"message":      c.Message,
		"parents":      parents,
		"verification": object{"reason": "unsigned"},
	}
}

func (q *call) getCommit() (int, any) {
	sha := q.values["commit_sha"]
	if q.commits[sha].Tree == "" {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return http.StatusOK, q.commit(sha)
}

// getCommitOf is the commit of HEAD, a branch, another reference, or a SHA.
func (q *call) getCommitOf() (int, any) {
	ref := q.values["ref"]
	if ref == "HEAD" {
		ref = "main"
	}
	for _, sha := range []string{ref, q.refs["refs/heads/"+ref], q.refs["refs/"+ref], q.refs[ref]} {
		if q.commits[sha].Tree != "" {
			c := q.commit(sha)
			return http.StatusOK, object{"sha": sha, "node_id": c["node_id"], "url": q.address("/commits/" + sha), "commit": c, "parents": c["parents"]}
		}
	}
	return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: %s", ref)
}
