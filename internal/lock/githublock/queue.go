package githublock

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-github/v93/github"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
)

// failedLabel is that of issues whose task has failed. A person removes it.
const failedLabel = "failed"

// labelsOf returns the labels of a query, label:ready or label:ready,linux: all of them.
func labelsOf(query string) ([]string, error) {
	text, ok := strings.CutPrefix(query, "label:")
	labels := fn.Each(strings.Split(text, ","), strings.TrimSpace)
	if !ok || slices.Contains(labels, "") {
		return nil, fmt.Errorf("%q names no issues; use label:ready, or label:ready,linux for those that have both", query)
	}
	return labels, nil
}

// Next implements [lock.Queue]. A query is label:NAME,… of open issues. Those with a label
// priority:… come first, and then the oldest. Left out are issues that have failed, that others
// than the assignee of this provider are assigned to, who are persons, and that are locked. Whether
// one that nobody is assigned to is locked is told by Acquire.
func (p *Provider) Next(ctx context.Context, query, region string, keyOf func(task string) string) (tasks []string, err error) {
	s := p.issues
	labels, err := labelsOf(query)
	if err != nil {
		return nil, err
	}
	var found []*github.Issue
	options := github.IssueListByRepoOptions{State: "open", Labels: labels, Sort: "created", Direction: "asc", ListOptions: github.ListOptions{PerPage: 100}}
	for issue, err := range s.client.Issues.ListByRepoIter(ctx, s.owner, s.name, &options) {
		if err != nil {
			return nil, s.explained(err)
		}
		if issue.IsPullRequest() || hasLabel(issue, failedLabel) {
			continue
		}
		if free, err := p.free(ctx, region, keyOf(strconv.Itoa(issue.GetNumber())), issue); err != nil {
			return nil, err
		} else if free {
			found = append(found, issue)
		}
	}
	slices.SortStableFunc(found, func(a, b *github.Issue) int { return priorityOf(a) - priorityOf(b) })
	return fn.Each(found, func(issue *github.Issue) string { return strconv.Itoa(issue.GetNumber()) }), nil
}

// free says whether a worker may try to lock an issue.
func (p *Provider) free(ctx context.Context, region, key string, issue *github.Issue) (bool, error) {
	if len(issue.Assignees) == 0 {
		return true, nil
	}
	login := p.issues.assignee(ctx)
	if slices.ContainsFunc(issue.Assignees, func(u *github.User) bool { return !strings.EqualFold(u.GetLogin(), login) }) {
		return false, nil
	}
	held, err := p.Find(ctx, lock.Query{Region: region, Key: key, Limit: 1})
	return err == nil && (len(held) == 0 || held[0].Left <= 0), err
}

func hasLabel(issue *github.Issue, name string) bool {
	return slices.ContainsFunc(issue.Labels, func(l *github.Label) bool { return strings.EqualFold(l.GetName(), name) })
}

// priorities are the words after priority: from the first to the last, beside numbers.
var priorities = []string{"critical", "high", "medium", "low"}

// noPriority is after all others.
const noPriority = 1 << 20

func priorityOf(issue *github.Issue) int {
	first := noPriority
	for _, l := range issue.Labels {
		word, ok := strings.CutPrefix(strings.ToLower(l.GetName()), "priority:")
		if !ok {
			continue
		}
		word = strings.TrimSpace(word)
		rank := slices.Index(priorities, word)
		if n, err := strconv.Atoi(word); err == nil {
			rank = min(max(n, 0), noPriority)
		}
		if rank >= 0 {
			first = min(first, rank)
		}
	}
	return first
}

// Due implements [lock.Queue].
func (p *Provider) Due(ctx context.Context, task, query string) (bool, error) {
	s := p.issues
	labels, err := labelsOf(query)
	if err != nil {
		return false, err
	}
	n, err := numberOf("", task)
	if err != nil {
		return false, err
	}
	issue, _, err := s.client.Issues.Get(ctx, s.owner, s.name, n)
	if err != nil {
		return false, s.explained(err)
	}
	missing := func(label string) bool { return !hasLabel(issue, label) }
	return issue.GetState() == "open" && !hasLabel(issue, failedLabel) && !slices.ContainsFunc(labels, missing), nil
}

// Finish implements [lock.Queue]. A task that is done loses the labels of the query, or its
// issue is closed; one that has failed gets the label failed.
func (p *Provider) Finish(ctx context.Context, task, query string, end lock.End) error {
	s := p.issues
	labels, err := labelsOf(query)
	if err != nil {
		return err
	}
	n, err := numberOf("", task)
	if err != nil {
		return err
	}
	switch end {
	case lock.Failed:
		_, _, err = s.client.Issues.AddLabelsToIssue(ctx, s.owner, s.name, n, []string{failedLabel})
	case lock.Closed:
		_, _, err = s.client.Issues.Update(ctx, s.owner, s.name, n, github.UpdateIssueRequest{State: new("closed")})
	default:
		for _, label := range labels {
			if _, err = s.client.Issues.RemoveLabelForIssue(ctx, s.owner, s.name, n, url.PathEscape(label)); err != nil && statusOf(err) != http.StatusNotFound {
				return s.explained(err)
			}
		}
		return nil
	}
	return s.explained(err)
}
