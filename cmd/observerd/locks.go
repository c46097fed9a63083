package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/jsontext"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
)

// lockCommands makes the commands below locks that look at locks and release them.
type lockCommands struct{ *cli }

func (c lockCommands) list() *cobra.Command {
	var f locks.Filter
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the locks that are held",
		Long: `List the general locks that are held, one line for each holder. A lock must match
all flags. The locks of the pollers are in 'observerd status'.`,
		Example: `  observerd locks ls --subject page --older-than 10m
  observerd locks ls --below fs-1 --below doc-2 -o json`,
		Args: takes(0, 0),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Subject, "subject", "", "what is protected, such as page")
	flags.StringVar(&f.Predicate, "predicate", "", "what is done, such as extracting")
	flags.StringVar((*string)(&f.Mode), "mode", "", "exclusive, shared, intent or intent-exclusive")
	flags.StringArrayVar(&f.Resources, "resource", nil, "a `name` that the lock has, at any position; repeat it")
	flags.StringArrayVar(&f.Below, "below", nil, "the first `name` of the resources, for a lock and all below it; repeat it for the next one")
	flags.StringVar(&f.Node, "node", "", "the holder's name")
	flags.Var(positive(&f.OlderThan), "older-than", "the least time since the lock was taken")
	flags.Lookup("older-than").DefValue = ""
	flags.BoolVar(&f.Expired, "expired", false, "locks whose lease has ended, and that no one has taken since")
	flags.IntVar(&f.Limit, "limit", 100, "the most that are listed")
	watch := watchFlag(cmd)
	output, timeout, provider := outputFlag(cmd), timeoutFlag(cmd, operateTimeout), providerFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.Limit <= 0 {
			return usageError{errors.New("--limit is not positive")}
		}
		cfg, _, err := c.loadConfig()
		if err != nil {
			return err
		}
		unknown, err := unknownWord(cfg, f)
		if err != nil {
			return err
		}
		list := func(ctx context.Context, w io.Writer) error {
			found, err := c.lockSystem(cfg, *provider).Find(ctx, f)
			if err == nil && unknown != nil && len(found) == 0 {
				fmt.Fprintf(c.stderr, "observerd: nothing was found; by this configuration, %v\n", unknown)
				unknown = nil // Once is enough, also with --watch.
			}
			return answer(w, *output, fn.Each(found, wiring.HeldLock), err, func() error {
				return table(w, []string{"LOCK", "HOLDER", "HELD FOR", "TTL LEFT", "WAITING", "TERM"}, fn.Each(found, func(l locks.Found) []string {
					return []string{l.Lock.String(), l.Node, span(l.Age), leftOf(l), strconv.Itoa(l.Waiting), l.Term}
				}))
			})
		}
		if *watch {
			return c.watch(cmd.Context(), *timeout, *output == formatText, list)
		}
		return within(cmd.Context(), *timeout, func(ctx context.Context) error { return list(ctx, c.stdout) })
	}
	return cmd
}

// unknownWord returns what is wrong with a subject or predicate that this configuration does
// not know, though another program's may. The error is of a mode that there is not.
func unknownWord(cfg *config.Config, f locks.Filter) (unknown *locks.DescriptorError, err error) {
	rules, err := locks.NewRules(wiring.LockOptions(cfg.Locks))
	if err != nil {
		return nil, err
	}
	// Only what the filter says can be wrong.
	d := locks.Descriptor{
		Subject: cmp.Or(f.Subject, locks.Subjects()[0]), Predicate: cmp.Or(f.Predicate, locks.Predicates()[0]), Mode: f.Mode, Resources: []string{"any"},
	}
	if errors.As(rules.Check(d), &unknown) && unknown.Field == "mode" {
		return nil, usageError{unknown}
	}
	return unknown, nil
}

func leftOf(l locks.Found) string {
	switch {
	case l.Left <= 0:
		return "expired"
	case l.Left == locks.Endless:
		return "no end"
	}
	return span(l.Left)
}

func (c lockCommands) show() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show LOCK",
		Short: "Show who holds a lock, for how long and what for",
		Long: `Show who holds a lock. LOCK is its text, lock:MODE:SUBJECT:PREDICATE:RESOURCE:…; mode and
predicate are not part of what is locked, so holders with others are shown too. A client
that uses only INT_LOCK, such as a Spring node, is not shown.`,
		Example: `  observerd locks show lock:exclusive:audit:processing:status-reconciliation`,
		Args:    takes(1, 1),
	}
	output, ask := outputFlag(cmd), c.asks(cmd, operateTimeout)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := locks.Parse(args[0])
		if err != nil {
			return usageError{err}
		}
		return ask(func(ctx context.Context, system admin.LockSystem) error {
			found, err := system.Find(ctx, admin.HoldersOf(d))
			return answer(c.stdout, *output, fn.Each(found, wiring.HeldLock), err, func() error { return c.printHolders(d, found) })
		})
	}
	return cmd
}

func (c lockCommands) printHolders(d locks.Descriptor, found []locks.Found) error {
	if len(found) == 0 {
		fmt.Fprintf(c.stdout, "%s is not locked\n", terminal.Escaped(d.Key()))
	}
	for _, l := range found {
		rows := [][]string{
			{"holder", l.Node}, {"term", l.Term}, {"fencing token", number(l.Fence)}, {"held for", span(l.Age)},
			{"TTL", span(l.Lock.TTL)}, {"TTL left", leftOf(l)}, {"waiting", strconv.Itoa(l.Waiting)},
		}
		for _, name := range slices.Sorted(maps.Keys(l.Lock.Metadata)) {
			rows = append(rows, []string{"metadata " + name, l.Lock.Metadata[name]})
		}
		if err := table(c.stdout, []string{"lock", l.Lock.String()}, rows); err != nil {
			return err
		}
	}
	return nil
}

func (c lockCommands) release() *cobra.Command {
	var term string
	cmd := &cobra.Command{
		Use:   "release LOCK",
		Short: "Take a lock from its holder",
		Long: `Take a lock from the holder whose term 'observerd locks show' has shown, and no other.
The holder notices it within a third of its TTL, and may continue until then; what it
writes under a guard or with its fencing token is refused at once. The audit table
has who did it; for another provider than the database a line of the log on stderr has it.
The exit code is 75 if no holder has that term.`,
		Example: `  observerd locks release lock:exclusive:audit:processing:status-reconciliation --term 0198c0de-0000-7000-8000-000000000001`,
		Args:    takes(1, 1),
	}
	cmd.Flags().StringVar(&term, "term", "", "the holder's `term`; required")
	by := byFlags(cmd)
	output, ask := outputFlag(cmd), c.asks(cmd, operateTimeout)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := locks.Parse(args[0])
		if err != nil {
			return usageError{err}
		}
		id, err := termOf(term)
		if err != nil {
			return usageError{err}
		}
		return ask(func(ctx context.Context, system admin.LockSystem) error {
			err := system.Release(ctx, d, id, by())
			if errors.Is(err, locks.ErrLost) {
				var found []locks.Found
				if found, err = system.Find(ctx, admin.HoldersOf(d)); err == nil {
					err = noHolder(d, id, found)
				}
				return err
			}
			return c.line(*output, jsontext.Object{{Name: "lock", Value: d.String()}, {Name: "term", Value: id}}, err, "%s: released", terminal.Escaped(d.Key()))
		})
	}
	return cmd
}

// termOf reads --term. Terms are compared as text, so it has one form.
func termOf(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errors.New("--term is missing; 'observerd locks show LOCK' has it")
	}
	id, err := uuid.Parse(text)
	if err != nil || !strings.EqualFold(id.String(), text) {
		return "", fmt.Errorf("--term %q is not a term; use a UUID such as 0198c0de-0000-7000-8000-000000000001, which 'observerd locks show LOCK' has", text)
	}
	return id.String(), nil
}

// noHolder is the error of a term that no holder has. It says who holds the lock.
func noHolder(d locks.Descriptor, term string, found []locks.Found) error {
	if len(found) == 0 {
		return codeError{exitNotAcquired, fmt.Errorf("%s is not locked", d.Key())}
	}
	var others strings.Builder
	for _, l := range found {
		fmt.Fprintf(&others, "; %s holds it: look at it with 'observerd locks show LOCK', and set --term %s", l.Node, l.Term)
	}
	return codeError{exitNotAcquired, fmt.Errorf("no holder of %s has the term %s%s", d.Key(), term, &others)}
}

// asks adds the flags of a command that asks a lock provider once, and returns how it does.
func (c lockCommands) asks(cmd *cobra.Command, limit time.Duration) func(act func(context.Context, admin.LockSystem) error) error {
	timeout, provider := timeoutFlag(cmd, limit), providerFlag(cmd)
	return func(act func(context.Context, admin.LockSystem) error) error {
		cfg, _, err := c.loadConfig()
		if err != nil {
			return err
		}
		return within(cmd.Context(), *timeout, func(ctx context.Context) error { return act(ctx, c.lockSystem(cfg, *provider)) })
	}
}

// providerFlag adds --provider, which says whose locks a command is about.
func providerFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("provider", config.DatabaseProvider, "the `id` of the lock provider, of those below locks.providers; database is the coordination database")
}

func (c *cli) lockSystem(cfg *config.Config, provider string) admin.LockSystem {
	return admin.LockSystem{Config: cfg, Logger: c.quietLogger(cfg.Log), Provider: provider}
}

// lockStats is what locks stats prints with -o json.
type lockStats struct {
	Kinds  []kindStats  `json:"kinds"`
	Failed []failedLock `json:"failed"`
}

// kindStats are figures of the locks of a subject and predicate. OldestNode is empty where
// nobody holds one.
type kindStats struct {
	Subject    string        `json:"subject"`
	Predicate  string        `json:"predicate"`
	Active     int64         `json:"active"`
	AverageTTL time.Duration `json:"average_ttl_ms"`
	Oldest     time.Duration `json:"oldest_ms"`
	OldestNode string        `json:"oldest_holder,omitempty"`
	Waiting    int64         `json:"waiting"`
	Failures   int64         `json:"failures"`
}

// failedLock is a lock that acquisitions failed for.
type failedLock struct {
	Name     string    `json:"name"`
	Failures int64     `json:"failures"`
	Last     time.Time `json:"last_failed_at"`
}

func (c lockCommands) stats() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show the figures of the locks in the cluster",
		Long: `Show the figures of the general locks of all processes by subject and predicate: the
number of holders, the mean of their TTLs, the longest hold, the number of waiting
callers, and of acquisitions that failed because another held the lock. Then follow the
locks with most failures. Each process records its failures every 10 s; those of a lock
are removed 7 days after the last one. Waiting callers are counted under the predicate
of the last holder.

For acquisitions per second and their duration see the metrics of package locks in each
process. Only the coordination database keeps counts.`,
		Example: `  observerd locks stats
  observerd locks stats --limit 50 -o json`,
		Args: takes(0, 0),
	}
	top := cmd.Flags().Int("limit", 10, "how many of the locks for which most have failed")
	renamed(cmd, "top", "limit")
	output, ask := outputFlag(cmd), c.asks(cmd, operateTimeout)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *top <= 0 {
			return usageError{errors.New("--limit is not positive")}
		}
		return ask(func(ctx context.Context, system admin.LockSystem) error {
			s, err := system.Stats(ctx, *top)
			return answer(c.stdout, *output, statsOf(s), err, func() error { return c.printStats(s.At, statsOf(s)) })
		})
	}
	return cmd
}

func (c lockCommands) sweep() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Remove leftovers of lock holders at a provider",
		Long: `Remove leftovers of released locks and dead holders at a provider that were not used
since. Not every provider has such leftovers: see 'observerd help locks'.`,
		Example: `  observerd locks sweep --provider cluster --older-than 24h`,
		Args:    takes(0, 0),
	}
	unused := 24 * time.Hour
	cmd.Flags().Var(positive(&unused), "older-than", "the least time since it was used")
	output, ask := outputFlag(cmd), c.asks(cmd, 5*time.Minute) // Some are watched for a while first.
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return ask(func(ctx context.Context, system admin.LockSystem) error {
			removed, err := system.Sweep(ctx, unused)
			return c.line(*output, jsontext.Object{{Name: "provider", Value: system.Provider}, {Name: "removed", Value: removed}}, err, "%s: %d removed", terminal.Escaped(system.Provider), removed)
		})
	}
	return cmd
}

func statsOf(s database.Stats) lockStats {
	return lockStats{
		fn.Each(s.Kinds, func(k database.KindStats) kindStats { return kindStats(k) }),
		fn.Each(s.Failed, func(f database.FailedLock) failedLock { return failedLock(f) }),
	}
}

func (c lockCommands) printStats(now time.Time, s lockStats) error {
	err := table(c.stdout, []string{"SUBJECT", "PREDICATE", "HELD", "AVERAGE TTL", "OLDEST", "BY", "WAITING", "FAILED"}, fn.Each(s.Kinds, func(k kindStats) []string {
		ttl, oldest := either(k.Active > 0, span(k.AverageTTL), "-"), either(k.Active > 0, span(k.Oldest), "-")
		return []string{k.Subject, k.Predicate, number(k.Active), ttl, oldest, orDash(k.OldestNode), number(k.Waiting), number(k.Failures)}
	}))
	if err != nil || len(s.Failed) == 0 {
		return err
	}
	fmt.Fprintln(c.stdout)
	return table(c.stdout, []string{"LOCK", "FAILED", "LAST"}, fn.Each(s.Failed, func(f failedLock) []string {
		return []string{f.Name, number(f.Failures), ago(now, f.Last)}
	}))
}

// lockProviders is what each kind of lock provider has, in a column each.
func lockProviders() (header []string, rows [][]string) {
	header = []string{""}
	for i, provider := range wiring.LockKinds() {
		header = append(header, provider.Name)
		for j, capability := range provider.List() {
			if i == 0 {
				rows = append(rows, []string{capability.Name})
			}
			rows[j] = append(rows[j], capability.Has)
		}
	}
	return header, rows
}

func lockProvidersText() string {
	var text strings.Builder
	header, rows := lockProviders()
	if err := table(&text, header, rows); err != nil {
		panic(err) // A Builder takes all.
	}
	return strings.TrimSuffix(text.String(), "\n")
}
