package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/admin/lockexec"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/locks"
)

// theft is one run of locks steal.
type theft struct {
	execution
	term   string
	by     func() admin.By
	output *format
}

// stolenLock is a lock that a theft has left held by nobody, as JSON has it.
type stolenLock struct {
	status.HeldLock
	// From is the former holder.
	From string `json:"stolen_from"`
}

func (c *cli) stealCommand() *cobra.Command {
	s := &theft{execution: execution{cli: c}}
	cmd := &cobra.Command{
		Use:   "steal LOCK",
		Short: "Take a lock from a live holder, and use or keep it",
		Long: `Take a lock from the holder whose term 'observerd locks show' has shown, and no other,
though its lease still runs. It passes those who wait. With a command after --, run it
under the lock as 'observerd exec' does. Without one, the lock stays held for the TTL, by
nobody, for a repair by hand; 'observerd locks release' ends it sooner.

The former holder notices it within a third of its TTL, and may continue until then; what
it writes under a guard or with its fencing token is refused at once. Policies define which
nodes may steal. The audit table of the database has who did it.

The exit codes are those of 'observerd exec'; 75 if the lock is not held by that term, or
if another holder that shares it conflicts with the mode.`,
		Example: `  observerd locks steal lock:exclusive:audit:processing:status-reconciliation --term 0198c0de-0000-7000-8000-000000000001 --ttl 10m
  observerd locks steal lock:exclusive:schema:writing:tenant-1 --term 0198c0de-0000-7000-8000-000000000001 -- ./repair.sh`,
		Args: takes(1, math.MaxInt),
		RunE: s.run,
	}
	cmd.Flags().StringVar(&s.term, "term", "", "the holder's `term`; required")
	s.by = byFlags(cmd)
	s.heldFlags(cmd)
	s.output = outputFlag(cmd)
	return cmd
}

func (s *theft) run(cmd *cobra.Command, args []string) error {
	d, err := s.wanted(args[0])
	if err != nil {
		return usageError{err}
	}
	command := args[1:]
	switch {
	case len(command) > 0 && cmd.ArgsLenAtDash() != 1:
		return usageError{errors.New("name one lock, and a command after --")}
	case s.grace <= 0:
		return usageError{s.wrongGrace()}
	case len(command) > 0 && cmd.Flags().Changed("output"):
		return usageError{errors.New("--output is for a lock without a command, whose own output is printed; leave it out")}
	case len(command) == 0 && s.maxHold > 0:
		return usageError{errors.New("--max-hold is for a command; --ttl says how long the lock is held without one")}
	}
	by := s.by()
	options := []locks.StealOption{locks.StolenBy(by.Actor, by.Reason), locks.MaxHold(s.maxHold)}
	if len(command) == 0 {
		options = append(options, locks.HoldAtLeast(d.TTL))
	} else if err := lockexec.Find(command[0]); err != nil {
		return notRunnable(err)
	}
	m, err := s.openLocks(cmd.Context(), d)
	if err != nil {
		return err
	}
	defer s.closeLocks(cmd.Context(), m)
	l, from, err := s.steal(cmd.Context(), m, d, options)
	switch {
	case errors.Is(err, locks.ErrRenewed), errors.Is(err, locks.ErrEnded):
		return codeError{exitNotAcquired, err}
	case err != nil:
		return notAcquired(err)
	case len(command) > 0:
		return s.hold(cmd.Context(), l, command)
	}
	return s.leave(cmd.Context(), m, l, from)
}

// stealTries is how often the lock is looked at whose holder renews it meanwhile: it was
// known to live.
const stealTries = 3

func (s *theft) steal(ctx context.Context, m *locks.Manager, d locks.Descriptor, options []locks.StealOption) (l *locks.Lease, from locks.Found, err error) {
	for range stealTries {
		if from, err = s.holder(ctx, m, d); err != nil {
			break
		}
		if l, err = m.Steal(ctx, from, d, options...); !errors.Is(err, locks.ErrRenewed) {
			break
		}
	}
	return l, from, err
}

// wanted returns the lock with what the flags say.
func (s *theft) wanted(text string) (locks.Descriptor, error) {
	d, err := locks.Parse(text)
	if err != nil {
		return d, err
	}
	if s.ttl <= 0 {
		return d, fmt.Errorf("--ttl %s is not positive; use 10m, for example", s.ttl)
	}
	if s.term, err = termOf(s.term); err != nil {
		return d, err
	}
	d.TTL = s.ttl
	d.Metadata, err = metadataOf(s.metadata)
	return d, err
}

// holder returns the holder that has the term, or says who holds the lock.
func (s *theft) holder(ctx context.Context, m *locks.Manager, d locks.Descriptor) (locks.Found, error) {
	found, err := holders(ctx, m, d)
	if err != nil {
		return locks.Found{}, err
	}
	if i := slices.IndexFunc(found, func(l locks.Found) bool { return l.Term == s.term }); i >= 0 {
		return found[i], nil
	}
	err = noHolder(d, s.term, found)
	if len(found) == 0 {
		err = fmt.Errorf("%w; take it with 'observerd exec --provider %s --lock %s'", err, *s.provider, d)
	}
	return locks.Found{}, err
}

// holders returns who holds the lock, in whatever mode and for whatever it does.
func holders(ctx context.Context, m *locks.Manager, d locks.Descriptor) ([]locks.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, operateTimeout)
	defer cancel()
	return m.Find(ctx, admin.HoldersOf(d))
}

// leave gives the lock to nobody, and says until when and how to end it.
func (s *theft) leave(ctx context.Context, m *locks.Manager, l *locks.Lease, from locks.Found) error {
	d, until := l.Descriptor(), time.Now().Add(s.ttl)
	if err := l.Release(ctx); err != nil {
		return notAcquired(err)
	}
	left := locks.Found{Lock: d, Fence: l.Fence(), Left: s.ttl}
	if found, err := holders(ctx, m, d); err == nil {
		for _, other := range found {
			if other.Fence == l.Fence() {
				left = other
			}
		}
	}
	if *s.output == formatJSON {
		return printJSON(s.stdout, stolenLock{wiring.HeldLock(left), from.Node})
	}
	term := cmp.Or(left.Term, "TERM") // as 'observerd locks show' has it
	fmt.Fprintf(s.stdout, "%s: stolen from %s; nobody holds it now, and it stays locked for %s, until %s\nTo free it sooner: observerd locks release %s --term %s --provider %s\n",
		terminal.Escaped(d.Key()), terminal.Escaped(from.Node), span(s.ttl), until.UTC().Format(time.RFC3339), terminal.Escaped(d.String()), terminal.Escaped(term), *s.provider)
	return nil
}
