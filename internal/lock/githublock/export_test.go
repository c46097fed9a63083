package githublock

import (
	"context"
	"strconv"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/lockkind"
	"github.com/observerd/observerd/internal/lock/record"
)

// SettingsOf are those of a configuration without more.
func SettingsOf(repository, server, token string) lockkind.Settings {
	s := Kind.Settings().(*settings)
	s.Repository = repository
	_ = s.URL.UnmarshalText([]byte(server))
	s.Token = field.NewSecret(token)
	return s
}

// Records are the store of a provider.
func (p *Provider) Records() record.Records { return p.issues }

// Map lets the provider lock issues of a test's choice by keys that are no numbers.
func (p *Provider) Map(number func(region, key string) (int, error)) { p.issues.number = number }

// RefOf is the reference of an issue.
func (p *Provider) RefOf(n int) string { return "refs/" + p.issues.namespace() + strconv.Itoa(n) }

// Beat edits the comment of a term, whatever the time of its lease.
func (p *Provider) Beat(ctx context.Context, g lock.Grant) error {
	r, err := p.issues.Get(ctx, g.Region, g.Key)
	if err != nil {
		return err
	}
	_, err = p.issues.Beat(ctx, r)
	return err
}
