package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/testbed"
	"github.com/observerd/observerd/test/suite/torture/balance"
)

// measureBalance is the command "balance": it measures how evenly clusters share
// their types.
func measureBalance(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("torture balance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	m := measurement{name: "balance"}
	m.flags(flags)
	cycles := flags.Int("cycles", 100, "how many cycles a score is of")
	lanes := flags.Int("lanes", 3, "how many clusters run side by side")
	only := flags.String("only", "", "measure only the clusters of these sizes, separated by commas: 2x3,10x50")
	if err := flags.Parse(args); err != nil {
		return usageOf(err)
	}
	return m.run(ctx, stdout, stderr, func(b *testbed.Testbed) (results, error) {
		return balance.Measure(ctx, balance.Options{Testbed: b, Cycles: *cycles, Lanes: *lanes, Cases: balance.Only(*only)})
	})
}

// results are what a measurement has found.
type results interface{ Markdown() []byte }

// measurement is what the commands that measure clusters have in common.
type measurement struct {
	name, folder, binary, write string
	set                         *flag.FlagSet
}

func (m *measurement) flags(flags *flag.FlagSet) {
	m.set = flags
	folder := filepath.Join("var", "torture", m.name+"-"+time.Now().UTC().Format("20060102T150405"))
	flags.StringVar(&m.folder, "folder", folder, "an empty `folder` for logs and results")
	flags.StringVar(&m.binary, "binary", "", "the observerd that is measured; empty: it is built")
	flags.StringVar(&m.write, "write", "", "replace the figures in this Markdown `file`")
}

// command measures again, wherever that is.
func (m *measurement) command() string {
	words := []string{"make bin/torture && bin/torture", m.name}
	m.set.Visit(func(f *flag.Flag) {
		if f.Name != "folder" && f.Name != "binary" && f.Name != "write" {
			words = append(words, "-"+f.Name+"="+f.Value.String())
		}
	})
	return strings.Join(words, " ")
}

// run opens a testbed, measures in it, and keeps and prints the results.
func (m *measurement) run(ctx context.Context, stdout, stderr io.Writer, measure func(*testbed.Testbed) (results, error)) (err error) {
	binary, err := testbed.Binary(ctx, m.binary, m.folder)
	if err != nil {
		return err
	}
	b, err := testbed.Open(ctx, testbed.Options{Binary: binary, Folder: m.folder, Progress: func(format string, args ...any) {
		fmt.Fprintf(stderr, format+"\n", args...)
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	circumstances, err := b.Circumstances(ctx, m.command())
	if err != nil {
		return err
	}
	found, err := measure(b)
	if err != nil {
		return err
	}
	if err := b.Keep("results.json", found); err != nil {
		return err
	}
	text := append(testbed.List(circumstances), found.Markdown()...)
	if _, err := stdout.Write(text); err != nil {
		return err
	}
	if m.write == "" {
		return nil
	}
	return testbed.Write(m.write, m.name, text)
}
