package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/wiring"
)

// cli is one run of the program: where it reads and writes, and what its
// global flags say.
type cli struct {
	environ []string
	stdin   io.Reader
	// stdout and stderr are for text; see [terminal.AsIs].
	stdout, stderr io.Writer

	configPaths []string
	// configGiven says that --config was given.
	configGiven bool
	settings    []string
	// presets are below what settings say.
	presets  map[string]string
	logLevel string
	version  bool
	// warned says that the warnings of the configuration were printed: a command may read it again.
	warned bool
	// began says that the command line was understood: what fails from then
	// on is not the fault of its form.
	began bool
}

// run does what the arguments say and returns the exit code.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &terminal.Text{Writer: stdout}
	c := &cli{environ: environ, stdin: stdin, stdout: out, stderr: &terminal.Text{Writer: stderr}}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(c.stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagFault)
	refuseStrangers(root)
	command, err := root.ExecuteContextC(ctx)
	switch unsaid := err == nil || errors.As(err, new(saidError)); {
	case out.Err != nil && unsaid:
		err = out.Err
	case err == nil:
		return exitOK
	case !c.began:
		err = usageError{err}
	}
	stopped := errors.Is(err, context.Canceled) || errors.As(err, new(signalError))
	if cause := context.Cause(ctx); stopped && errors.As(cause, new(signalError)) {
		err = cause
	}
	explain(c.stderr, command, err)
	return exitCode(err)
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "observerd",
		Short: "Turn rows of databases that others own into durable events",
		Long: `observerd polls databases that other teams own and turns each new or changed
row into exactly one durable event. Any number of identical nodes share the work.`,
		Example: `  observerd validate                  check config.yaml and the databases in it
  observerd run                       run a node
  observerd status                    what the cluster does
  observerd doctor                    problems and warnings
  observerd poll ID --once --dry-run  what an observer would find now`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.version && len(args) == 0 {
				return c.printVersion(formatText)
			}
			return needsCommand(cmd, args)
		},
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			c.configGiven = cmd.Flags().Changed("config")
			err := checkTexts(cmd, args)
			c.began = err == nil
			return err
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.Flags().BoolVar(&c.version, "version", false, "print the version, as 'observerd version' does")
	flags := root.PersistentFlags()
	flags.StringArrayVarP(&c.configPaths, "config", "c", []string{"config.yaml"}, "the configuration `file`, or a folder of *.yaml; repeat it for more, which are merged")
	flags.StringArrayVar(&c.settings, "set", nil, "set a `key=value` of the configuration, such as log.level=debug; may be repeated")
	flags.StringVar(&c.logLevel, "log-level", "", "the least `level` to log: debug, info, warn or error")
	root.AddCommand(
		c.initCommand(), c.runCommand(), c.reloadCommand(), c.validateCommand(), c.doctorCommand(), c.statusCommand(), c.healthcheckCommand(),
		group("migrate", "Bring the coordination database up to date", c.migrateUp(), c.migrateStatus()), c.pollCommand(),
		group("events", "Look at the event log", c.eventsTail()), c.schemaCommand(), c.observersCommand(), c.sinksCommand(), c.deadCommand(), c.auditCommand(), c.locksCommand(), c.execCommand(), c.sampleCommand(), c.versionCommand(), manCommand(), exitCodesTopic(),
	)
	return root
}

// operate runs act with an operator on the cluster of the configuration, which is read
// unless the options have it.
func (c *cli) operate(ctx context.Context, timeout time.Duration, o admin.OperatorOptions, act func(context.Context, *admin.Operator) error) (err error) {
	if o.Config == nil {
		if o.Config, err = c.configure(); err != nil {
			return err
		}
	}
	o.Logger = c.quietLogger(o.Config.Log)
	operator, err := admin.NewOperator(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operator.Close()) }()
	return within(ctx, timeout, func(ctx context.Context) error { return act(ctx, operator) })
}

// within bounds an act by --timeout, and says so where that has ended it; 0 bounds nothing.
func within(ctx context.Context, timeout time.Duration, act func(context.Context) error) error {
	if timeout == 0 {
		return act(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := act(bounded)
	if bounded.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("--timeout %s is over; use a longer one if the database answers: %w", timeout, err)
	}
	return err
}

// operates lets a command act with an operator as [cli.operate] does.
func (c *cli) operates(cmd *cobra.Command, timeout *time.Duration, o admin.OperatorOptions,
	act func(ctx context.Context, operator *admin.Operator, args []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.operate(cmd.Context(), *timeout, o, func(ctx context.Context, operator *admin.Operator) error { return act(ctx, operator, args) })
	}
	return cmd
}

// group is a command that only has others below it.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: needsCommand}
	g.AddCommand(commands...)
	return g
}

// refuseStrangers gives the commands that cobra brings the manners of ours: by
// themselves they print help, and end well, when they are asked for what is not
// there. They write where root does now, so that has to be settled.
func refuseStrangers(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Short = "Print a script that completes commands, flags and observers in a shell"
			cmd.Long = ""
			for _, shell := range cmd.Commands() {
				shell.Short = "Print the script for " + shell.Name()
			}
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, needsCommand
		case "help":
			cmd.Short, cmd.Long = "Show the help of a command", ""
			help := cmd.Run
			cmd.Run, cmd.RunE = nil, func(cmd *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err == nil && len(rest) > 0 {
					return needsCommand(found, rest)
				}
				help(cmd, args)
				return nil
			}
		}
	}
}

// errNoConfig is an empty variable of a script, most likely: a node on defaults
// would look well and poll nothing.
var errNoConfig = usageError{errors.New("--config is empty; name a file")}

// loadConfig loads the configuration as the global flags say: without a file where there is
// none and --set has what it is read for, the database. The error of a mistake in the
// configuration is a [*config.Error].
func (c *cli) loadConfig() (*config.Config, []config.Problem, error) {
	if slices.Contains(c.configPaths, "") {
		return nil, nil, errNoConfig
	}
	overrides, err := c.overrides()
	if err != nil {
		return nil, nil, err
	}
	paths := c.configPaths
	_, byURL := overrides["database.url"]
	_, byFile := overrides["database.url-file"]
	if !c.configGiven && (byURL || byFile) && len(paths) == 1 {
		if _, err := os.Stat(paths[0]); errors.Is(err, fs.ErrNotExist) {
			paths = nil
		}
	}
	return config.Load(config.Options{
		Paths: paths, Kinds: wiring.Kinds(), Environ: c.environ, Overrides: overrides, FlagNames: map[string]string{"log.level": "--log-level"},
	})
}

// configure loads the configuration for a one-shot command, which prints
// warnings and goes on.
func (c *cli) configure() (*config.Config, error) {
	cfg, warnings, err := c.loadConfig()
	if !c.warned {
		warn(c.stderr, warnings)
	}
	c.warned = true
	return cfg, err
}

func warn(w io.Writer, warnings []config.Problem) {
	for _, p := range warnings {
		fmt.Fprintf(w, "warning: %s\n", p)
	}
}

// overrides are what --set and --log-level say.
func (c *cli) overrides() (map[string]any, error) {
	overrides := make(map[string]any)
	for key, value := range c.presets {
		overrides[key] = value
	}
	for _, setting := range c.settings {
		key, value, ok := strings.Cut(setting, "=")
		if !ok || key == "" {
			// The text is not repeated: it may be a secret without its key.
			return nil, usageError{errors.New("--set needs a key and a value, such as --set log.level=debug")}
		}
		overrides[key] = value
	}
	if c.logLevel != "" {
		overrides["log.level"] = c.logLevel
	}
	return overrides, nil
}
