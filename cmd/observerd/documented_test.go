package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	// typed finds what a document has as a line of a shell.
	typed = regexp.MustCompile(`(?m)^ *[$#] observerd (.*)$`)
	// mentioned finds what stands in its text as code.
	mentioned = regexp.MustCompile("`observerd\\s+([^`]+)`")
)

// TestDocumentedCommands understands each command that a document tells somebody
// to run, maybe at three in the morning, without running it. Of what a text only
// mentions, the command and its flags must be there.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	const root = "../.."
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/runbooks/*.md", ".github/*/*.md"} {
		some, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(some) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(some), err)
		}
		pages = append(pages, some...)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for kind, is := range map[*regexp.Regexp]func([]string) error{typed: understood, mentioned: known} {
			for _, m := range kind.FindAllStringSubmatch(string(text), -1) {
				found++
				if err := is(strings.Fields(m[1])); err != nil {
					t.Errorf("%s: observerd %s: %v", page, m[1], err)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("the documents have %d commands: has their form changed?", found)
	}
}

// TestCommandsAreListed looks for each command in the table of docs/commands.md: in the first
// cell of a row that names its group, or the command itself.
func TestCommandsAreListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(path string, command *cobra.Command)
	walk = func(path string, command *cobra.Command) {
		for _, sub := range command.Commands() {
			switch name := sub.Name(); {
			case sub.Hidden || path == "observerd" && slices.Contains([]string{"help", "completion", "exit-codes"}, name):
			case sub.HasSubCommands():
				walk(path+" "+name, sub)
			case !regexp.MustCompile("(?m)^\\| [^|]*`" + path + "[^|]*\\b" + name + "[ `]").Match(page):
				t.Errorf("docs/commands.md lacks %s %s", path, name)
			}
		}
	}
	walk("observerd", commands())
}

// saying finds what a recipe is headed with, where that is a message.
var saying = regexp.MustCompile(`(?m)^\*\*"([^"]+)"`)

// TestDocumentedMessages looks for the messages under which an operator looks up
// what to do: they are those of the program, word for word.
func TestDocumentedMessages(t *testing.T) {
	t.Parallel()
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	err = filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	messages := saying.FindAllStringSubmatch(string(page), -1)
	if len(messages) < 5 {
		t.Errorf("the recipes have %d messages: has their form changed?", len(messages))
	}
	for _, m := range messages {
		if !strings.Contains(source.String(), m[1]) {
			t.Errorf("no program says %q", m[1])
		}
	}
}

// TestDocumentedLockProviders holds the table of what providers of locks have.
func TestDocumentedLockProviders(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/locks.md")
	if err != nil {
		t.Fatal(err)
	}
	header, rows := lockProviders()
	row := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	want := row(header) + "|" + strings.Repeat("---|", len(header)) + "\n"
	for _, cells := range rows {
		want += row(cells)
	}
	if !strings.Contains(string(page), want+"\n") {
		t.Errorf("docs/locks.md lacks the table:\n%s", want)
	}
}

// understood tells why a command line cannot be run, as far as that shows before.
// What follows a pipe, a redirection, a comment or an ampersand is the shell's.
func understood(args []string) error {
	if end := slices.IndexFunc(args, func(word string) bool { return slices.Contains([]string{"|", ">", "2>", "#", "&", "&&"}, word) }); end >= 0 {
		args = args[:end]
	}
	command, rest, err := commands().Find(args)
	if err != nil {
		return err
	}
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	if command.HasSubCommands() {
		return errors.New("a command is missing")
	}
	return command.ValidateArgs(command.Flags().Args())
}

// known tells what of a command is not there. Its arguments may be left out, or
// stand for others.
func known(words []string) error {
	if words[0] == "source" {
		return nil // Sessions in a source go by "observerd source NAME".
	}
	command, rest, err := commands().Find(words)
	if err != nil {
		return err
	}
	if command.HasSubCommands() && len(rest) > 0 {
		return fmt.Errorf("it has no command %s", rest[0])
	}
	for _, word := range rest {
		name, _, _ := strings.Cut(strings.Trim(word, "[]"), "=")
		long, isLong := strings.CutPrefix(name, "--")
		switch short := strings.TrimPrefix(name, "-"); {
		case isLong && command.Flag(long) == nil,
			!isLong && len(short) == 1 && short != name && command.Flags().ShorthandLookup(short) == nil && command.InheritedFlags().ShorthandLookup(short) == nil:
			return fmt.Errorf("it has no flag %s", name)
		}
	}
	return nil
}

// commands are those of the program, and cobra's own.
func commands() *cobra.Command {
	root := (&cli{stdout: io.Discard, stderr: io.Discard}).root()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	return root
}
