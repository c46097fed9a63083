package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/locks"
)

// policyCheck is one run of locks policy check.
type policyCheck struct {
	*cli
	text     string
	ttl      time.Duration
	metadata []string
	output   *format
}

// policyVerdict is what it prints with -o json.
type policyVerdict struct {
	Policies []policyRow `json:"policies"`
	// Lock, Allowed, Rule and Reason are of --lock. Rule is empty where no policy refuses
	// it, as for a subject that is not known.
	Lock    string `json:"lock,omitempty"`
	Allowed *bool  `json:"allowed,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// policyRow is a policy; what is empty is no bound.
type policyRow struct {
	Name        string       `json:"name"`
	Subject     string       `json:"subject,omitempty"`
	Predicate   string       `json:"predicate,omitempty"`
	Mode        locks.Mode   `json:"mode,omitempty"`
	MinTTL      string       `json:"min_ttl,omitempty"`
	MaxTTL      string       `json:"max_ttl,omitempty"`
	ExplicitTTL bool         `json:"explicit_ttl,omitempty"`
	MaxHold     string       `json:"max_hold,omitempty"`
	Modes       []locks.Mode `json:"modes,omitempty"`
	Metadata    []string     `json:"metadata,omitempty"`
	PerNode     int          `json:"per_node,omitempty"`
	StealBy     []string     `json:"steal_by,omitempty"`
	Reason      string       `json:"reason,omitempty"`
}

func (c *cli) policyCommand() *cobra.Command {
	p := &policyCheck{cli: c}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "List the policies in force, and check a lock against them",
		Long: `List the policies of the locks for other work: those of the configuration, and those
that are built in. With --lock, check whether that lock is allowed, or which policy
refuses it; the exit code is 2 then. Without --ttl, no TTL is given. No database is
used, so limits per node are not checked.`,
		Example: `  observerd locks policy check
  observerd locks policy check --lock lock:exclusive:page:extracting:fs-1:doc-2:3 --ttl 60s`,
		Args: takes(0, 0),
		RunE: p.run,
	}
	p.output = outputFlag(cmd)
	cmd.Flags().StringVar(&p.text, "lock", "", "the lock to judge, as `lock:MODE:SUBJECT:PREDICATE:RESOURCE:…`")
	cmd.Flags().DurationVar(&p.ttl, "ttl", 0, "the TTL that it asks for")
	cmd.Flags().StringArrayVar(&p.metadata, "metadata", nil, "its metadata, as `name=value`; repeat it")
	return group("policy", "Show the policies of locks", cmd)
}

func (p *policyCheck) run(cmd *cobra.Command, _ []string) error {
	switch {
	case p.ttl < 0, cmd.Flags().Changed("ttl") && p.ttl == 0:
		return usageError{fmt.Errorf("--ttl %s is not positive; use 30s, for example", p.ttl)}
	case p.text == "" && (p.ttl > 0 || len(p.metadata) > 0):
		return usageError{errors.New("--ttl and --metadata are of a lock; use --lock")}
	}
	cfg, _, err := p.loadConfig()
	if err != nil {
		return err
	}
	rules, err := locks.NewRules(wiring.LockOptions(cfg.Locks))
	if err != nil {
		return err
	}
	var refused error
	verdict := policyVerdict{Policies: fn.Each(rules.Policies(), rowOf)}
	if cmd.Flags().Changed("lock") {
		refused = p.judge(rules, &verdict)
	}
	err = answer(p.stdout, *p.output, verdict, nil, func() error { return p.print(verdict) })
	switch {
	case err != nil, refused == nil:
		return err
	case *p.output == formatJSON:
		return usageError{saidError{refused}}
	}
	return usageError{refused}
}

// judge says what becomes of the lock.
func (p *policyCheck) judge(rules *locks.Rules, verdict *policyVerdict) error {
	d, err := locks.Parse(p.text)
	if err == nil {
		d.TTL = p.ttl
		d.Metadata, err = metadataOf(p.metadata)
	}
	if err == nil {
		err = rules.Check(d)
	}
	allowed := err == nil
	verdict.Lock, verdict.Allowed = p.text, &allowed
	if policy, ok := errors.AsType[*locks.PolicyError](err); ok {
		verdict.Rule, verdict.Reason = policy.Rule, policy.Reason
	} else if err != nil {
		verdict.Reason = err.Error()
	}
	return err
}

func (p *policyCheck) print(v policyVerdict) error {
	err := table(p.stdout, []string{"POLICY", "LOCKS", "BOUNDS", "REASON"}, fn.Each(v.Policies, func(row policyRow) []string {
		which := cmp.Or(strings.Join(strings.Fields(row.Subject+" "+row.Predicate+" "+string(row.Mode)), " "), "all")
		return []string{row.Name, which, cmp.Or(strings.Join(row.bounds(), ", "), "none"), orDash(row.Reason)}
	}))
	if err == nil && v.Allowed != nil && *v.Allowed {
		fmt.Fprintf(p.stdout, "%s is allowed\n", terminal.Escaped(v.Lock))
	}
	return err
}

func rowOf(p locks.Policy) policyRow {
	return policyRow{
		Name: p.Name, Subject: p.Subject, Predicate: p.Predicate, Mode: p.Mode, MinTTL: bound(p.MinTTL), MaxTTL: bound(p.MaxTTL),
		ExplicitTTL: p.ExplicitTTL, MaxHold: bound(p.MaxHold), Modes: p.Modes, Metadata: p.Metadata, PerNode: p.PerNode,
		StealBy: p.StealBy, Reason: p.Reason,
	}
}

// bound is empty for 0, which is none.
func bound(d time.Duration) string { return either(d == 0, "", d.String()) }

// bounds says what the policy asks of them.
func (r policyRow) bounds() []string {
	var all []string
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(r.ExplicitTTL, "a TTL is given")
	add(r.MinTTL != "", "TTL of %s or more", r.MinTTL)
	add(r.MaxTTL != "", "TTL of %s or less", r.MaxTTL)
	add(r.MaxHold != "", "held for %s at most", r.MaxHold)
	modes := fn.Each(r.Modes, func(mode locks.Mode) string { return string(mode) })
	add(len(modes) > 0, "mode %s", strings.Join(modes, " or "))
	add(len(r.Metadata) > 0, "metadata %s", strings.Join(r.Metadata, " and "))
	add(r.PerNode > 0, "%d in one process", r.PerNode)
	add(len(r.StealBy) > 0, "stolen by %s", strings.Join(r.StealBy, " or "))
	return all
}

// metadataOf reads what --metadata says.
func metadataOf(texts []string) (map[string]string, error) {
	metadata := make(map[string]string)
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--metadata %q is not a name=value", text)
		}
		if _, twice := metadata[name]; twice {
			return nil, fmt.Errorf("--metadata has two values for %s; leave one out", name)
		}
		metadata[name] = value
	}
	return metadata, nil
}
