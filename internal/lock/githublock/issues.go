package githublock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v93/github"

	"github.com/observerd/observerd/internal/lock/record"
)

// issues are the records of a repository: [record.Records], and [record.Beats].
type issues struct {
	Options
	owner, name string
	client      *github.Client
	budget      *budget
	// number returns the issue of a lock.
	number func(region, key string) (int, error)

	mu      sync.Mutex
	commits map[string]commit // by SHA
	tree    string            // that of the commits
	login   *string           // of the assignee, once it is known
}

// mostCommits bounds the commits that are remembered.
const mostCommits = 1000

// commit is one of ours. It never changes.
type commit struct {
	record.Record
	tree string
	date time.Time // when the term began, by the server's clock
}

var (
	errNotOurs = errors.New("the reference is at a commit that observerd did not make; find out who moved it, and delete the reference when no one holds the lock")
	repository = regexp.MustCompile(`^[A-Za-z0-9_-]+/[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$`)
)

func newIssues(o Options) (*issues, error) {
	o.setDefaults()
	s := &issues{Options: o, number: numberOf, commits: make(map[string]commit)}
	if !repository.MatchString(o.Repository) {
		return nil, fmt.Errorf("the repository %q is none; use OWNER/NAME, as acme/tasks", o.Repository)
	}
	switch {
	case o.Token == nil:
		return nil, errors.New("there is no token; set token-file, or GH_TOKEN in the environment")
	case s.Heartbeat < 0 || s.TTL < 0 || s.Budget < 0:
		return nil, errors.New("the heartbeat, the TTL or the budget is negative; leave it out for its default")
	case s.Heartbeat > s.TTL/2:
		return nil, fmt.Errorf("the heartbeat of %s is more than half of the TTL of %s; use less", s.Heartbeat, s.TTL)
	}
	s.owner, s.name, _ = strings.Cut(o.Repository, "/")
	var err error
	if s.budget, err = newBudget(s.Options); err == nil {
		s.client, err = newClient(s.Options, s.budget)
	}
	return s, err
}

// numberOf returns the issue whose number is the only resource of a lock.
func numberOf(_, key string) (int, error) {
	_, resources, ok := strings.Cut(key, ":")
	if !ok {
		resources = key
	}
	n, err := strconv.Atoi(resources)
	if err != nil || n < 1 || strconv.Itoa(n) != resources {
		return 0, fmt.Errorf("%q is not a number of an issue; name one resource, as 42", resources)
	}
	return n, nil
}

// namespace is where the references are, as the API writes it.
func (s *issues) namespace() string {
	if s.Branches {
		return "heads/observerd-locks/"
	}
	return "observerd/locks/"
}

func (s *issues) refOf(n int) string { return s.namespace() + strconv.Itoa(n) }

func (s *issues) Get(ctx context.Context, region, key string) (record.Record, error) {
	n, err := s.number(region, key)
	if err != nil {
		return record.Record{}, err
	}
	sha, err := s.head(ctx, n)
	if err != nil || sha == "" {
		return record.Record{}, err
	}
	return s.at(ctx, n, sha)
}

// at is the record of a commit, with the last heartbeat of its term.
func (s *issues) at(ctx context.Context, n int, sha string) (record.Record, error) {
	at, err := s.commit(ctx, sha)
	if errors.Is(err, errNotOurs) {
		err = fmt.Errorf("refs/%s: %w", s.refOf(n), err)
	}
	if err != nil || at.Term == "" {
		return at.Record, err
	}
	beats, err := s.beats(ctx, n, at.date)
	return beats[beatOf(at.Term, n)].on(at.Record), err
}

// head returns the commit of an issue's reference, or "" where there is none.
func (s *issues) head(ctx context.Context, n int) (string, error) {
	ref, _, err := s.client.Git.GetRef(ctx, s.owner, s.name, s.refOf(n))
	if statusOf(err) == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", s.explained(err)
	}
	return ref.GetObject().GetSHA(), nil
}

// commit reads a commit of ours.
func (s *issues) commit(ctx context.Context, sha string) (commit, error) {
	s.mu.Lock()
	known, ok := s.commits[sha]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	c, _, err := s.client.Git.GetCommit(ctx, s.owner, s.name, sha)
	if err != nil {
		return commit{}, s.explained(err)
	}
	return s.remember(c)
}

func (s *issues) remember(c *github.Commit) (commit, error) {
	if c.GetSHA() == "" {
		return commit{}, errors.New("the answer has no commit; find out what answers in place of GitHub")
	}
	r, began, err := recordOf(c.GetMessage())
	if err != nil {
		return commit{}, err
	}
	if began.IsZero() {
		began = c.GetCommitter().GetDate().Time
	}
	r.Version = c.GetSHA()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.commits) >= mostCommits {
		clear(s.commits)
	}
	s.commits[r.Version] = commit{r, c.GetTree().GetSHA(), began}
	return s.commits[r.Version], nil
}

func (s *issues) Put(ctx context.Context, r record.Record) (record.Record, error) {
	n, err := s.number(r.Region, r.Key)
	if err != nil {
		return record.Record{}, err
	}
	sha, beat, _ := strings.Cut(r.Version, " ")
	next, before, err := s.write(ctx, n, sha, r)
	if err != nil {
		return record.Record{}, err
	}
	ref := s.refOf(n)
	if sha == "" {
		_, _, err = s.client.Git.CreateRef(ctx, s.owner, s.name, github.CreateRef{Ref: ref, SHA: next.Version})
	} else {
		_, _, err = s.client.Git.UpdateRef(ctx, s.owner, s.name, ref, github.UpdateRef{SHA: next.Version, Force: new(false)})
	}
	switch {
	case statusOf(err) == http.StatusUnprocessableEntity:
		return record.Record{}, s.refused(ctx, n, sha, err)
	case err != nil:
		return record.Record{}, s.explained(err)
	case next.Term == before.Term && beat != "":
		next.Version += " " + beat
	}
	return next.Record, nil
}

// write makes the commit of a record after the one that it is to replace.
func (s *issues) write(ctx context.Context, n int, sha string, r record.Record) (next, before commit, err error) {
	after := github.Commit{}
	if sha != "" {
		if before, err = s.commit(ctx, sha); err != nil {
			return next, before, err
		}
		after.Parents = []*github.Commit{{SHA: &sha}}
	}
	tree := before.tree
	if tree == "" {
		if tree, err = s.anyTree(ctx); err != nil {
			return next, before, err
		}
	}
	r.Revision = before.Revision + 1
	var began time.Time // of a term that goes on
	if r.Term == before.Term {
		began = before.date
	}
	after.Tree, after.Message = &github.Tree{SHA: &tree}, new(messageOf(n, r, began))
	made, _, err := s.client.Git.CreateCommit(ctx, s.owner, s.name, after, nil)
	if err != nil {
		return next, before, s.explained(err)
	}
	next, err = s.remember(made)
	return next, before, err
}

// anyTree returns the tree of the default branch: a commit must have one.
func (s *issues) anyTree(ctx context.Context) (string, error) {
	s.mu.Lock()
	tree := s.tree
	s.mu.Unlock()
	if tree != "" {
		return tree, nil
	}
	head, _, err := s.client.Repositories.GetCommit(ctx, s.owner, s.name, "HEAD", &github.ListOptions{PerPage: 1})
	if err != nil {
		return "", s.explained(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tree = head.GetCommit().GetTree().GetSHA()
	return s.tree, nil
}

// refused tells a reference that another has moved from one that may not be moved.
func (s *issues) refused(ctx context.Context, n int, sha string, err error) error {
	switch now, failed := s.head(ctx, n); {
	case failed != nil:
		return errors.Join(err, failed)
	case now != sha:
		return record.ErrConflict
	case sha == "" && !s.Branches:
		return fmt.Errorf("the server refuses references of its own name; set branches: true for all processes that share these locks: %w", err)
	}
	return fmt.Errorf("the server refuses to move refs/%s; check the rules for its branches: %w", s.refOf(n), err)
}

// Delete implements [record.Records]. It is never called.
func (s *issues) Delete(context.Context, record.Record) error { return errors.ErrUnsupported }

// List implements [record.Records]. It returns those of all regions where region is empty.
func (s *issues) List(ctx context.Context, region string) (all []record.Record, err error) {
	refs, _, err := s.client.Git.ListMatchingRefs(ctx, s.owner, s.name, s.namespace())
	if err != nil {
		return nil, s.explained(err)
	}
	var oldest time.Time
	var comments []string
	for _, ref := range refs {
		at, err := s.commit(ctx, ref.GetObject().GetSHA())
		if errors.Is(err, errNotOurs) { // The other locks are to be seen.
			s.Logger.Warn("A lock cannot be read", "reference", ref.GetRef(), "err", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if region != "" && at.Region != region {
			continue
		}
		comments = append(comments, at.Term+" "+path.Base(ref.GetRef()))
		if all = append(all, at.Record); at.Term != "" && (oldest.IsZero() || at.date.Before(oldest)) {
			oldest = at.date
		}
	}
	if oldest.IsZero() {
		return all, nil
	}
	beats, err := s.beats(ctx, 0, oldest)
	for i, r := range all {
		all[i] = beats[comments[i]].on(r)
	}
	return all, err
}
