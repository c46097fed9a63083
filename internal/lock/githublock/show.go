package githublock

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v93/github"
	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/record"
)

// showTimeout bounds what is shown to people, beside half of the time that its caller has: what
// decides needs the rest.
const showTimeout = 2500 * time.Millisecond

func showing(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := showTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	return context.WithTimeout(ctx, limit)
}

// slack is more than the clocks of one server differ.
const slack = 10 * time.Minute

// beat is the comment of a term.
type beat struct {
	id    int64
	stamp string
}

// version is what changes with each heartbeat; empty where there is no comment.
func (b beat) version() string {
	if b.id == 0 {
		return ""
	}
	return strconv.FormatInt(b.id, 10) + " " + b.stamp
}

// on is the record with the last heartbeat of its term.
func (b beat) on(r record.Record) record.Record {
	if b.id != 0 {
		r.Version += " " + b.version()
		if t, err := time.Parse(time.RFC3339Nano, b.stamp); err == nil {
			r.RenewedAt = t
		}
	}
	return r
}

// beatOf names the comment of a term at an issue.
func beatOf(term string, n int) string { return fmt.Sprint(term, " ", n) }

// beats returns the comments of terms by [beatOf], of an issue or of all (0), which were written
// since a term of that date. A term has one comment, the first that has its name.
func (s *issues) beats(ctx context.Context, n int, since time.Time) (map[string]beat, error) {
	beats := make(map[string]beat)
	options := github.IssueListCommentsOptions{Since: new(since.Add(-slack)), ListOptions: github.ListOptions{PerPage: 100}}
	for c, err := range s.client.Issues.ListCommentsIter(ctx, s.owner, s.name, n, &options) {
		if err != nil {
			return nil, s.explained(err)
		}
		said := commentIn(c.GetBody()).Lock
		at := said.WorkerID + " " + path.Base(c.GetIssueURL())
		if old, ok := beats[at]; said.WorkerID != "" && (!ok || c.GetID() < old.id) {
			beats[at] = beat{c.GetID(), strings.ReplaceAll(said.HeartbeatLast, " ", "_")}
		}
	}
	return beats, nil
}

func (s *issues) Version(ctx context.Context, r record.Record) (string, error) {
	n, err := s.number(r.Region, r.Key)
	if err != nil {
		return "", err
	}
	sha, _, _ := strings.Cut(r.Version, " ")
	at, err := s.at(ctx, n, sha)
	return at.Version, err
}

func (s *issues) Beat(ctx context.Context, r record.Record) (string, error) {
	return s.tell(ctx, r, false)
}

// tell edits the comment of a record's term, or writes it where there is none.
func (s *issues) tell(ctx context.Context, r record.Record, released bool) (version string, err error) {
	n, err := s.number(r.Region, r.Key)
	if err != nil {
		return "", err
	}
	sha, found, _ := strings.Cut(r.Version, " ")
	if found == "" { // It may be there, without an answer.
		version, err := s.Version(ctx, r)
		if err != nil {
			return "", err
		}
		_, found, _ = strings.Cut(version, " ")
	}
	text, _, _ := strings.Cut(found, " ")
	body := commentOf(r, released)
	id, _ := strconv.ParseInt(text, 10, 64) // Empty is 0.
	if id != 0 {
		_, _, err = s.client.Issues.UpdateComment(ctx, s.owner, s.name, id, github.IssueCommentRequest{Body: body})
	}
	if id == 0 || statusOf(err) == http.StatusNotFound {
		var made *github.IssueComment
		made, _, err = s.client.Issues.CreateComment(ctx, s.owner, s.name, n, github.IssueCommentRequest{Body: body})
		id = made.GetID()
	}
	return sha + " " + beat{id, commentIn(body).Lock.HeartbeatLast}.version(), s.explained(err)
}

// show tells people who has an issue. What fails is logged: the first heartbeat writes the
// comment then.
func (s *issues) show(ctx context.Context, g lock.Grant) {
	ctx, cancel := showing(ctx)
	defer cancel()
	n, err := s.number(g.Region, g.Key)
	if err != nil {
		return
	}
	r := record.Record{Region: g.Region, Key: g.Key, Term: g.Term, Node: g.Node, Metadata: g.Metadata, AcquiredAt: time.Now()}
	_, _, err = s.client.Issues.CreateComment(ctx, s.owner, s.name, n, github.IssueCommentRequest{Body: commentOf(r, false)})
	if login := s.assignee(ctx); err == nil && login != "" {
		var issue *github.Issue
		issue, _, err = s.client.Issues.AddAssignees(ctx, s.owner, s.name, n, []string{login})
		is := func(u *github.User) bool { return strings.EqualFold(u.GetLogin(), login) }
		if err == nil && !slices.ContainsFunc(issue.Assignees, is) {
			err = fmt.Errorf("%s cannot be assigned; give it the right to push, or set assignee", login)
		}
	}
	s.logShown(g, err)
}

// hide tells people that an issue is free, before it is: another could have it after that. The
// one of another term is left alone.
func (s *issues) hide(ctx context.Context, g lock.Grant) {
	ctx, cancel := showing(ctx)
	defer cancel()
	r, err := s.Get(ctx, g.Region, g.Key)
	if err == nil && r.Term != g.Term {
		return
	}
	if err == nil {
		_, err = s.tell(ctx, r, true)
	}
	if login := s.assignee(ctx); err == nil && login != "" {
		n, _ := s.number(g.Region, g.Key) // Get has it.
		_, _, err = s.client.Issues.RemoveAssignees(ctx, s.owner, s.name, n, []string{login})
	}
	s.logShown(g, err)
}

func (s *issues) logShown(g lock.Grant, err error) {
	if err != nil {
		s.Logger.Warn("The issue does not show the holder; the lock itself is correct", "lock", g.Key, "err", s.explained(err))
	}
}

// assignee returns the login that issues are assigned to, or "" where there is none.
func (s *issues) assignee(ctx context.Context) string {
	s.mu.Lock()
	known := s.login
	s.mu.Unlock()
	if known != nil {
		return *known
	}
	login := s.Assignee
	if login == "" {
		user, _, err := s.client.Users.Get(ctx, "")
		switch status := statusOf(err); {
		case status == http.StatusForbidden || status == http.StatusNotFound:
			s.Logger.Warn("The token is that of an app, to which no issue can be assigned; set assignee to show one")
		case err != nil:
			return ""
		}
		login = user.GetLogin()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.login = &login
	return login
}

// sweep deletes the comments of terms that have ended, which were not edited since that time.
func (p *Provider) sweep(ctx context.Context, _ string, before time.Time) (removed int, err error) {
	s := p.issues
	all, err := s.List(ctx, "")
	if err != nil {
		return 0, err
	}
	held := fn.Set(fn.Each(all, func(r record.Record) string { return r.Term }))
	// What is deleted while its pages are read would hide others.
	var old []int64
	options := github.IssueListCommentsOptions{Sort: new("updated"), Direction: new("asc"), ListOptions: github.ListOptions{PerPage: 100}}
	for c, err := range s.client.Issues.ListCommentsIter(ctx, s.owner, s.name, 0, &options) {
		if err != nil {
			return 0, s.explained(err)
		}
		if !c.GetUpdatedAt().Before(before) {
			break
		}
		if term := commentIn(c.GetBody()).Lock.WorkerID; uuid.Validate(term) == nil && !held[term] { // A person quotes it, if at all.
			old = append(old, c.GetID())
		}
	}
	for _, id := range old {
		switch _, failed := s.client.Issues.DeleteComment(ctx, s.owner, s.name, id); {
		case failed == nil:
			removed++
		case statusOf(failed) != http.StatusNotFound:
			return removed, s.explained(failed)
		}
	}
	return removed, nil
}
