package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/nearest"
)

// takes checks that a command is given from least to most arguments. Their names are
// those of its Use.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		form := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		names := strings.Fields(cmd.Use)[1:]
		switch {
		case len(args) < least:
			return fmt.Errorf("%s is missing; use '%s'", names[len(args)], form)
		case len(args) > most && most == 0:
			return fmt.Errorf("unexpected argument %s: the command takes none; use '%s'", quoted(args[0]), form)
		case len(args) > most:
			return fmt.Errorf("unexpected argument %s; use '%s'", quoted(args[most]), form)
		}
		return nil
	}
}

// checkTexts refuses what is not UTF-8, which databases do not take. Names of files may be any
// bytes, and so may the words of a command, and who acts and why: the audit table has U+FFFD there.
func checkTexts(cmd *cobra.Command, args []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		kind, _ := pflag.UnquoteUsage(f)
		noted := f.Name == "actor" || f.Name == "reason"
		if noted && len(f.Value.String()) > 1000 { // Every status repeats it.
			err = fmt.Errorf("--%s is longer than 1000 bytes; shorten it", f.Name)
		}
		if !noted && kind != "file" && !utf8.ValidString(f.Value.String()) {
			err = fmt.Errorf("--%s is not UTF-8; use printable text", f.Name)
		}
	})
	for _, arg := range args {
		if cmd.Name() != "exec" && !utf8.ValidString(arg) {
			err = fmt.Errorf("argument %s is not UTF-8; use printable text", quoted(arg))
		}
	}
	return err
}

// quoted is an argument as a message repeats it. A URL may hold a password.
func quoted(arg string) string {
	return either(strings.Contains(arg, "://"), "a URL", strconv.Quote(arg))
}

// needsCommand refuses a group that is called without one of its commands, or
// with one that it does not have.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(&terminal.Text{Writer: cmd.ErrOrStderr()})
		_ = cmd.Help()
		return usageError{errors.New("a command is missing")}
	}
	text := fmt.Sprintf("there is no command %q", args[0])
	if strings.Contains(args[0], "://") {
		text = "a URL is not a command"
	}
	if instead := insteadOf(cmd, args); instead != "" {
		text += "; " + instead
	}
	return usageError{errors.New(text)}
}

// insteadOf says what to write for a command that a group does not have: that which
// lives elsewhere under this name, else the nearest, else all of them if they are few.
func insteadOf(group *cobra.Command, args []string) string {
	elsewhere := fn.Group(commandsBelow(group.Root()), func(c *cobra.Command) (name, path string) { return c.Name(), c.CommandPath() })
	here := fn.Each(fn.Only(group.Commands(), (*cobra.Command).IsAvailableCommand), (*cobra.Command).Name)
	if paths := elsewhere[args[0]]; len(paths) > 0 {
		return writeOneOf(paths, args[1:])
	}
	if near := cmp.Or(nearest.Name(args[0], here), completed(args[0], here)); near != "" {
		return writeOneOf([]string{group.CommandPath() + " " + near}, args[1:])
	}
	if paths := elsewhere[nearest.Name(args[0], slices.Sorted(maps.Keys(elsewhere)))]; len(paths) > 0 {
		return writeOneOf(paths, args[1:])
	}
	if group.HasParent() {
		return nearest.Suggest(args[0], here)
	}
	return ""
}

// commandsBelow are the commands of a tree that do something.
func commandsBelow(cmd *cobra.Command) (all []*cobra.Command) {
	for _, c := range fn.Only(cmd.Commands(), (*cobra.Command).IsAvailableCommand) {
		all = append(append(all, c), commandsBelow(c)...)
	}
	return all
}

// plainWords are arguments that a shell takes as they are, and that hold no secret.
var plainWords = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// writeOneOf repeats the arguments that follow, as far as they are plain.
func writeOneOf(paths, args []string) string {
	var rest strings.Builder
	for _, arg := range args {
		if !plainWords.MatchString(arg) {
			break
		}
		rest.WriteString(" " + arg)
	}
	return "use " + strings.Join(fn.Each(paths, func(path string) string { return "'" + path + rest.String() + "'" }), " or ")
}

// completed is the only name that begins so, or "".
func completed(beginning string, names []string) string {
	found := fn.Only(names, func(name string) bool { return strings.HasPrefix(name, beginning) })
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// flagFault says of a wrong flag what to write instead.
func flagFault(cmd *cobra.Command, err error) error {
	unknown, isUnknown := errors.AsType[*pflag.NotExistError](err)
	bare, isBare := errors.AsType[*pflag.ValueRequiredError](err)
	switch value, isValue := errors.AsType[*pflag.InvalidValueError](err); {
	case isUnknown && cmd.HasSubCommands() && cmd.Flags().NArg() > 0:
		return needsCommand(cmd, cmd.Flags().Args()) // The flag is that command's.
	case isUnknown:
		return unknownFlag(cmd, unknown)
	case isBare:
		name, _ := pflag.UnquoteUsage(bare.GetFlag())
		return fmt.Errorf("--%s has no value; use --%[1]s %s", bare.GetFlag().Name, strings.ToUpper(name))
	case isValue:
		return fmt.Errorf("--%s is wrong: %w", value.GetFlag().Name, valueFault(value))
	case errors.As(err, new(*pflag.InvalidSyntaxError)):
		return errors.New("a flag has no name; use --name or --name=value")
	}
	return err
}

func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	written, meant := "--"+unknown.GetSpecifiedName(), unknown.GetSpecifiedName()
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		written, meant = "-"+meant, letters
	}
	text := "there is no flag " + written
	if near := nearest.Name(meant, names); near != "" && len(meant) > 1 {
		text += "; use --" + near
	}
	return errors.New(text)
}

// valueFault is what is wrong with the value of a flag, without the words of Go's
// packages.
func valueFault(e *pflag.InvalidValueError) error {
	instead := map[string]string{
		"duration": "a time such as 30s or 5m", "int": "a whole number", "int64": "a whole number",
		"float64": "a number", "bool": "true or false",
	}[e.GetFlag().Value.Type()]
	if _, ours := e.GetFlag().Value.(*checked); ours || instead == "" {
		return e.Unwrap()
	}
	return errors.New("use " + instead)
}

// completeObservers offers the ids of the configuration that are not there yet. The database
// is not asked: a completion must be quick.
func (c *cli) completeObservers(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cfg, _, err := c.loadConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, o := range cfg.Observers {
		if !slices.Contains(args, o.ID) {
			ids = append(ids, cobra.CompletionWithDesc(o.ID, o.Type+" from "+o.Source))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completeObserver offers one id.
func (c *cli) completeObserver(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completeObservers(cmd, args, word)
}

// manCommand writes the manual pages that the packages install, one for each
// command. They stand on the texts of the help alone, so there is nothing to keep
// in step.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write the manual pages into a folder",
		Args:   takes(1, 1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			// The generated mark would hold the day of the build.
			root.DisableAutoGenTag = true
			// A table: in a code block its lines stay as they are.
			root.Long += "\n\n```\n" + exitCodesTopic().Long + "\n```"
			header := &doc.GenManHeader{Section: "1", Source: "observerd " + buildVersion(), Manual: "User Commands"}
			// The pages of one commit are the same whenever they are written; a build without it
			// has the present day.
			if date, err := time.Parse(time.RFC3339, commitDate()); err == nil {
				header.Date = &date
			}
			if err := doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{Path: args[0], CommandSeparator: "-", Header: header}); err != nil {
				return fmt.Errorf("write the manual: %w", err)
			}
			return nil
		},
	}
}
