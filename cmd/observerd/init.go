package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/status"
)

// initRun is one run of init.
type initRun struct {
	*cli
	options admin.InitOptions
	timeout *time.Duration
	force   bool
}

func (c *cli) initCommand() *cobra.Command {
	r := &initRun{cli: c}
	cmd := &cobra.Command{
		Use:   "init URL",
		Short: "Create a first configuration from a database",
		Long: `Look at a database and write a commented configuration for it, which
'observerd validate' accepts: an observer for each table or view that the account
may read. The database is only read.

A column that says when a row was changed is chosen before one that says when it was
created, and the tables with the best column and the most recent change come first. A
column that may be NULL, has zero dates or looks like a business date is not chosen but
offered in a comment. A sample of the last rows of each table decides: at most 1000, by
the primary key, for at most 10 seconds in all. A small table without such a column is
read whole by each poll. What needs a decision, such as a table without a primary key, is
commented out. At most 20 observers are switched on.

What was chosen and why is printed to stderr.

The password is never written. A variable stands for one that the URL holds; to
keep it out of the list of processes as well, name a file with --password-file.`,
		Example: `  observerd init sqlite:shop.db > config.yaml
  observerd init postgres://app@db.example.org/shop --password-file /run/secrets/shop -o config.yaml
  observerd init mysql://app@db.example.org/shop --table orders --table 'stock_*'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("use the URL of one database, such as sqlite:shop.db or postgres://USER@HOST/DATABASE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r.options.URL = args[0]
			return r.run(cmd)
		},
	}
	r.timeout = timeoutFlag(cmd, 30*time.Second)
	flags := cmd.Flags()
	flags.StringVarP(&r.options.Out, "out", "o", "", "write this `file`, which only its owner may read; default: stdout")
	flags.BoolVar(&r.force, "force", false, "overwrite the file of --out")
	flags.StringArrayVar(&r.options.Tables, "table", nil, "take only tables of this `name`, in which * and ? match letters; may be repeated")
	flags.StringVar(&r.options.PasswordFile, "password-file", "", "a `file` with the password")
	return cmd
}

func (r *initRun) run(cmd *cobra.Command) error {
	o := r.options
	o.Timeout = *r.timeout
	file, err := r.place()
	if err != nil {
		return err
	}
	if o.Password, err = passwordIn(o.PasswordFile); err != nil {
		return err
	}
	made, err := admin.Init(cmd.Context(), o)
	switch {
	case err != nil:
		return argumentFault(err)
	case o.Out == "":
		if _, err := io.WriteString(r.stdout, made.Text); err != nil {
			return err
		}
	default:
		if err := writeOwn(file, made.Text, r.force); err != nil {
			return err
		}
	}
	return r.explain(made)
}

// maxDoubtful bounds what is printed of the tables that are commented out.
const maxDoubtful = 20

// explain says what was chosen and why, and what comes next.
func (r *initRun) explain(made admin.Initial) error {
	out, now := cmp.Or(r.options.Out, "config.yaml"), time.Now()
	var rows [][]string
	for _, c := range made.Choices[:min(len(made.Choices), made.Active+maxDoubtful)] {
		rows = append(rows, []string{c.Table, either(c.Active, c.Detect, "commented out"), orDash(c.Timestamp), age(now, c.Newest), c.Reason})
	}
	if err := table(r.stderr, []string{"TABLE", "DETECT", "TIMESTAMP", "NEWEST", "REASON"}, rows); err != nil {
		return err
	}
	if more := len(made.Choices) - len(rows); more > 0 {
		fmt.Fprintf(r.stderr, "and %d more, commented out\n", more)
	}
	if r.options.Out == "" {
		fmt.Fprintf(r.stderr, "the configuration has %s, and %d commented out: save it as %s\n", status.Plural(made.Active, "observer", "observers"), made.Doubtful, out)
	} else {
		fmt.Fprintf(r.stderr, "%s has %s, and %d commented out\n", out, status.Plural(made.Active, "observer", "observers"), made.Doubtful)
	}
	if len(made.Variables) > 0 {
		fmt.Fprintf(r.stderr, "set in the environment: %s\n", strings.Join(made.Variables, ", "))
	}
	fmt.Fprintf(r.stderr, "next:\n  observerd validate --config %[1]s\n  observerd run --config %[1]s\n  observerd events tail --follow --config %[1]s\n", out)
	return nil
}

// passwordIn reads the file of --password-file; without one there is no password.
func passwordIn(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--password-file: %w; name a file with the password", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", usageError{errors.New("--password-file: the file is empty; it must contain the password")}
	}
	return password, nil
}

// argumentFault makes a fault of the arguments one of the command line.
func argumentFault(err error) error {
	if errors.As(err, new(admin.ArgumentError)) {
		return usageError{err}
	}
	return err
}

// age words how far a time of a row is from now, roughly.
func age(now, then time.Time) string {
	switch d := now.Sub(then); {
	case then.IsZero():
		return "-"
	case d < 0:
		return until(now, then)
	default:
		for _, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute} {
			if d >= unit {
				return span(d.Truncate(unit)) + " ago"
			}
		}
		return span(d) + " ago"
	}
}

// place is the file that --out names, behind links. It refuses early: the look at a
// database may take a while.
func (r *initRun) place() (string, error) {
	out := r.options.Out
	info, err := os.Stat(out)
	_, noFolder := os.Stat(filepath.Dir(out))
	_, noLink := os.Readlink(out)
	switch {
	case out == "" && r.force:
		return "", usageError{errors.New("--force is for --out; name a file there")}
	case out == "":
		return "", nil
	case err == nil && !info.Mode().IsRegular():
		return "", usageError{fmt.Errorf("--out: %s is no regular file; name one, or leave out --out to write to stdout", out)}
	case err == nil && !r.force:
		return "", exists(out)
	case err == nil:
		return filepath.EvalSymlinks(out)
	case errors.Is(noFolder, fs.ErrNotExist):
		return "", usageError{fmt.Errorf("--out: the folder %s does not exist; create it, or name a file in another", filepath.Dir(out))}
	case noLink == nil:
		return "", usageError{fmt.Errorf("--out: %s is a link to a place that does not exist; correct the link, or name another file", out)}
	}
	return out, nil
}

func exists(path string) error {
	return usageError{fmt.Errorf("%s exists already; name another file, or overwrite it with --force", path)}
}

// writeOwn writes a file that nobody else may read. One that was there keeps its
// contents until all is written.
func writeOwn(path, text string, force bool) error {
	if !force {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return exists(path)
		}
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	}
	beside := path + ".new"
	_ = os.Remove(beside) // Of a run that was killed.
	if err := writeOwn(beside, text, false); err != nil {
		return err
	}
	return os.Rename(beside, path)
}
