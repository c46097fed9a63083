package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin/lockexec"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/locks"
)

// closeTimeout bounds how long the lock's release may take.
const closeTimeout = 10 * time.Second

// execution is one run of exec.
type execution struct {
	*cli
	text               string
	subject, predicate string
	resources          []string
	metadata           []string
	shared, intents    bool
	ttl, wait, grace   time.Duration
	atLeast, maxHold   time.Duration
	priority           int
	provider           *string
	nextIssue          string
	close              bool
	// finish notes how the command of a task has ended; nil where there is none.
	finish func(code int) error
}

func (c *cli) locksCommand() *cobra.Command {
	l := lockCommands{c}
	g := group("locks", "Use the lock system for other work",
		l.list(), l.show(), l.stats(), l.release(), l.sweep(), c.stealCommand(), c.execCommand(), c.policyCommand())
	g.Long = "Use the lock system for other work. What the locks of each kind of provider have; the first two\nare coordination databases:\n\n" + lockProvidersText()
	return g
}

func (c *cli) execCommand() *cobra.Command {
	e := &execution{cli: c}
	cmd := &cobra.Command{
		Use:   "exec COMMAND [ARGUMENT …]",
		Short: "Run a command under a lock of the cluster",
		Long: `Run a command while this process holds a lock in the coordination database, or at the
provider that --provider names. The lock is renewed while the command runs, and released
when it has ended. If the lock is lost, the command gets SIGTERM, and SIGKILL after
--grace.

The command inherits stdin, stdout and stderr. Signals are passed on to it and to its
children. Its environment has LOCK_NAME, LOCK_TERM and LOCK_FENCING_TOKEN.

A plain name, without colons, is an exclusive lock of that name. The other form describes
what is locked, with words of docs/locks.md or of locks.subjects and locks.predicates. With
--set database.url=URL no configuration file is needed.

Without --wait, a lock that is held is tried again after about 1, 2, 4, 8 and 16
seconds, and whenever the turn of this process comes.

The exit code is the command's; 75 if the lock was not acquired, 76 if it was lost or its
release was not answered, 127 if the command was not found and 126 if it cannot be
executed. See 'observerd help exit-codes' for the others.`,
		Example: `  observerd exec --lock nightly-report -- ./report.sh
  observerd exec --set database.url=postgres://locks@db.example.org/locks --lock nightly-report -- ./report.sh
  observerd exec --lock lock:exclusive:audit:processing:status-reconciliation --ttl 300s --wait 30s -- ./audit.sh
  observerd exec --subject page --predicate extracting --resource fs-1 --resource doc-2 --resource 3 -- make extract
  observerd exec --subject schema --predicate reading --resource tenant-123 --shared -- ./report.sh`,
		RunE: e.run,
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&e.text, "lock", "", "the whole lock: a `NAME` such as nightly-report, or lock:MODE:SUBJECT:PREDICATE:RESOURCE:…")
	flags.StringVar(&e.subject, "subject", "", "what is protected, such as page")
	flags.StringVar(&e.predicate, "predicate", "", "what is done, such as extracting")
	flags.StringArrayVar(&e.resources, "resource", nil, "the `name` of what is protected, from the general to the particular; repeat it")
	flags.BoolVar(&e.shared, "shared", false, "let others read at the same time; without it the lock is exclusive")
	flags.BoolVar(&e.intents, "intents", false, "take intents on what is above, such as the fileset of a page")
	flags.StringVar(&e.nextIssue, "next-issue", "", "take the next issue that `label:NAME,…` finds, at a provider of type github; {issue} in the command is its number")
	flags.BoolVar(&e.close, "close", false, "close the issue of --next-issue when the command has ended with 0")
	flags.IntVar(&e.priority, "priority", 0, "the place in line of those who wait: a greater `number` comes first")
	flags.DurationVar(&e.wait, "wait", 0, "how long to wait for the lock; 0s tries once")
	flags.DurationVar(&e.atLeast, "hold-at-least", 0, "how long the lock stays held, also when the command ends sooner")
	e.heldFlags(cmd)
	return cmd
}

// heldFlags are those of a lock that is held while a command runs.
func (e *execution) heldFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	e.provider = providerFlag(cmd)
	flags.StringArrayVar(&e.metadata, "metadata", nil, "a value for people, as `name=value`; may be repeated")
	flags.DurationVar(&e.ttl, "ttl", locks.DefaultTTL, "how long the lock outlives this process")
	flags.DurationVar(&e.maxHold, "max-hold", 0, "how long the command may run before it is ended as after a loss; 0s: no bound")
	flags.DurationVar(&e.grace, "grace", lockexec.DefaultGrace, "the time from SIGTERM to SIGKILL when the lock was lost")
}

func (e *execution) wrongGrace() error {
	return fmt.Errorf("--grace %s is not positive; use 10s, for example", e.grace)
}

func (e *execution) run(cmd *cobra.Command, args []string) error {
	d, err := e.descriptor()
	if err != nil {
		return usageError{err}
	}
	if len(args) == 0 {
		return usageError{errors.New("the command to run is missing; put it after --")}
	}
	switch {
	case e.wait < 0:
		return usageError{fmt.Errorf("--wait %s is negative; use 0s to try once", e.wait)}
	case e.grace <= 0:
		return usageError{e.wrongGrace()}
	}
	if err := lockexec.Find(args[0]); err != nil {
		return notRunnable(err)
	}
	options := []locks.Option{locks.Priority(e.priority), locks.HoldAtLeast(e.atLeast), locks.MaxHold(e.maxHold)}
	if e.intents {
		options = append(options, locks.WithIntents())
	}
	if cmd.Flags().Changed("wait") {
		options = append(options, locks.Within(e.wait))
	}
	m, err := e.openLocks(cmd.Context(), d)
	if err != nil {
		return err
	}
	defer e.closeLocks(cmd.Context(), m)
	if e.nextIssue != "" {
		return e.work(cmd.Context(), m, d, args, options)
	}
	l, err := m.Acquire(cmd.Context(), d, options...)
	if err != nil {
		return notAcquired(err)
	}
	return e.hold(cmd.Context(), l, args)
}

// work runs the command for the next issue, and notes how it has ended.
func (e *execution) work(ctx context.Context, m *locks.Manager, d locks.Descriptor, command []string, options []locks.Option) error {
	task, err := m.AcquireNext(ctx, e.nextIssue, d, options...)
	if err != nil {
		return notAcquired(err)
	}
	args := fn.Each(command, func(arg string) string { return strings.ReplaceAll(arg, "{issue}", task.Name) })
	e.finish = func(code int) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		end := locks.Failed
		switch {
		case code == 128+int(syscall.SIGINT), code == 128+int(syscall.SIGTERM):
			return nil // A person, or a deployment, has stopped it: it comes again.
		case code == 0 && e.close:
			end = locks.Closed
		case code == 0:
			end = locks.Done
		}
		return task.Finish(ctx, end)
	}
	return e.hold(ctx, task.Lease, args)
}

// openLocks opens the provider for a lock that is allowed.
func (e *execution) openLocks(ctx context.Context, d locks.Descriptor) (*locks.Manager, error) {
	// Warnings are for those who configure, and not for those whom cron tells of each line.
	cfg, _, err := e.loadConfig()
	if err != nil {
		return nil, err
	}
	interrupts.widen(endings...)
	rules, err := locks.NewRules(wiring.LockOptions(cfg.Locks))
	if err == nil {
		err = rules.Check(d)
	}
	if err != nil {
		return nil, notAcquired(err)
	}
	ctx, cancel := context.WithTimeout(ctx, operateTimeout)
	defer cancel()
	m, err := e.lockSystem(cfg, *e.provider).Open(ctx)
	if err != nil {
		return nil, notAcquired(err)
	}
	return m, nil
}

func (e *execution) closeLocks(ctx context.Context, m *locks.Manager) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if closed := m.Close(ctx); closed != nil {
		fmt.Fprintf(e.stderr, "observerd: the lock may remain until its TTL ends: %v\n", closed)
	}
}

// hold runs the command and releases the lock.
func (e *execution) hold(ctx context.Context, l *locks.Lease, command []string) error {
	atTerminal := lockexec.AtTerminal()
	signals, stop := passSignals(atTerminal)
	defer stop()
	code, err := 0, context.Cause(ctx)
	if interrupts.pass(signals) {
		code, err = lockexec.Run(l, lockexec.Options{
			Command: command, Environ: e.environ, Signals: signals, Grace: e.grace,
			Stdin: e.stdin, Stdout: terminal.AsIs(e.stdout), Stderr: terminal.AsIs(e.stderr), Terminal: atTerminal,
		})
	}
	var noted error
	if err == nil && e.finish != nil {
		noted = e.finish(code)
	}
	released := l.Release(ctx)
	lost := errors.Join(err, released)
	switch {
	case errors.Is(lost, locks.ErrLost):
		how := either(errors.Is(lost, locks.ErrHeldTooLong), "held for its max-hold", "lost")
		return codeError{exitLost, fmt.Errorf("%s was %s while the command ran, which ended with %d", l.Descriptor(), how, code)}
	case err != nil:
		return notRunnable(err)
	case released != nil:
		// Another may have taken it: that the lease was trusted to the end says nothing of an
		// operator, or of a database that went back.
		return codeError{exitLost, fmt.Errorf("whether this process still held %s is not known, nor whether it was released: it may remain until its TTL ends; the command ended with %d: %w",
			l.Descriptor(), code, released)}
	case noted != nil:
		return codeError{exitUnavailable, fmt.Errorf("the command ended with %d, which is not noted at %s, so the issue comes again: %w", code, l.Descriptor(), noted)}
	}
	if code != 0 {
		return codeError{code, saidError{fmt.Errorf("the command ended with %d", code)}}
	}
	return nil
}

// endings are signals that end a process which does nothing about them, beside SIGINT and
// SIGTERM. Before the command runs they end the wait, and the lock is released.
var endings = []os.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// passSignals returns a channel of the signals that the command is to get, beside those of
// [interrupts]. What this process was told to ignore, as by nohup, stays ignored. At a
// terminal, Ctrl-Z stops both.
func passSignals(atTerminal bool) (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 16)
	for _, s := range []os.Signal{syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP} {
		if byTerminal := atTerminal && s == syscall.SIGTSTP; !byTerminal && !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals, func() { signal.Stop(signals) }
}

// descriptor returns the lock that the flags describe.
func (e *execution) descriptor() (locks.Descriptor, error) {
	d := locks.Descriptor{Subject: e.subject, Predicate: e.predicate, Resources: e.resources}
	parts := e.subject != "" || e.predicate != "" || len(e.resources) > 0
	switch {
	case e.close && e.nextIssue == "":
		return d, errors.New("--close is for --next-issue; leave it out")
	case e.nextIssue != "" && (e.text != "" || len(e.resources) > 0 || e.shared):
		return d, errors.New("--next-issue chooses the lock; leave out --lock, --resource and --shared")
	case e.nextIssue != "":
		d = locks.Descriptor{Subject: cmp.Or(e.subject, "issue"), Predicate: cmp.Or(e.predicate, "processing"), Resources: []string{"1"}}
	case e.text != "" && (parts || e.shared):
		return d, errors.New("--lock is the whole lock; leave out --subject, --predicate, --resource and --shared")
	case e.text == "" && !parts:
		return d, errors.New("the lock is missing; use --lock NAME, --lock lock:exclusive:SUBJECT:PREDICATE:RESOURCE, or --subject, --predicate and --resource")
	}
	switch {
	case e.ttl <= 0:
		return d, fmt.Errorf("--ttl %s is not positive; use 30s, for example", e.ttl)
	case e.text != "":
		var err error
		if d, err = locks.Parse(e.text); err != nil {
			return d, err
		}
	}
	if e.shared {
		d.Mode = locks.Shared
	}
	d.TTL = e.ttl
	var err error
	d.Metadata, err = metadataOf(e.metadata)
	return d, err
}

// notAcquired gives the reasons why the lock was not taken their exit codes.
func notAcquired(err error) error {
	switch {
	case errors.Is(err, locks.ErrHeld):
		return codeError{exitNotAcquired, err}
	case errors.Is(err, locks.ErrLost): // The answer came too late to be trusted.
		return codeError{exitUnavailable, err}
	case errors.As(err, new(*locks.DescriptorError)), errors.As(err, new(*locks.PolicyError)), errors.Is(err, locks.ErrUnsupported):
		return usageError{err}
	case wiring.FaultOf(err) == wiring.Failure && !errors.As(err, new(codeError)): // Whatever the provider has, the command did not run.
		return codeError{exitUnavailable, err}
	}
	return err
}

// notRunnable gives the reasons why a command does not start the exit codes of shells.
func notRunnable(err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return codeError{exitNotFound, err}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR), errors.Is(err, exec.ErrDot):
		return codeError{exitNotExecutable, err}
	}
	return err
}

// codeError is an error with an exit code of its own.
type codeError struct {
	code int
	error
}

func (e codeError) Unwrap() error { return e.error }
