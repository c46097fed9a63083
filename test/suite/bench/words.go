package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // The driver "sqlite".

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
)

const (
	quietTypes = 14
	goalReadme = 1_200
	// ticksADay are those of the default interval, summariesADay those of log.cycles: quiet.
	ticksADay     = 24 * 60 * 2
	summariesADay = 24
)

// measureWords counts what a user has to read: the README, and the log of a node in whose
// tables nothing happens.
func measureWords(ctx context.Context, s *suite) (_ []figure, err error) {
	root, err := daemon.Root(ctx)
	if err != nil {
		return nil, err
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return nil, err
	}
	all, err := s.logs(ctx, "all")
	if err != nil {
		return nil, err
	}
	quiet, err := s.logs(ctx, "quiet")
	if err != nil {
		return nil, err
	}
	if all.ticks == 0 {
		return nil, errors.New("the log has no complete cycle")
	}
	group := fmt.Sprintf("The log of %d quiet types on SQLite, at INFO", quietTypes)
	words := len(strings.Fields(string(readme)))
	return []figure{{
		group: "The README", what: "words", value: say("%s", whole(words)), goal: "under 1,200", met: []bool{words < goalReadme},
	}, {
		group: group, what: "`log.cycles: all`, scaled from ticks of 1 s to those of 30 s",
		value:  say("%s lines a day, %s words", whole(all.lines/all.ticks*ticksADay), whole(all.words/all.ticks*ticksADay)),
		beside: say("%s lines a tick, %s words a line", decimal(all.lines/all.ticks, 1), decimal(all.words/all.lines, 1)),
	}, {
		group: group, what: "`log.cycles: quiet`, scaled in the same way, and 24 lines `Polling summary`",
		value:  say("%s lines a day", whole(quiet.lines/all.ticks*ticksADay+summariesADay)),
		beside: say("%s lines a tick", decimal(quiet.lines/all.ticks, 1)),
	}}, nil
}

// logged are lines of a log and their words: a time, a level or an attribute is one.
type logged struct{ ticks, lines, words float64 }

// logs runs a node for a while, and counts what it logs.
func (s *suite) logs(ctx context.Context, cycles string) (_ logged, err error) {
	folder, err := os.MkdirTemp("", "observerd-bench-")
	if err != nil {
		return logged{}, err
	}
	defer os.RemoveAll(folder)
	bed := testbed.Testbed{Options: testbed.Options{Folder: folder}}
	if bed.Binary, err = testbed.Binary(ctx, "", folder); err != nil {
		return logged{}, err
	}
	c, err := shopConfig(ctx, folder)
	if err != nil {
		return logged{}, err
	}
	p, err := bed.Start(ctx, "words", c, "OBSERVERD_LOG_CYCLES="+cycles)
	if err != nil {
		return logged{}, err
	}
	defer func() { err = errors.Join(err, testbed.Stop(ctx, p)) }()
	s.progress("words: log.cycles: %s for %s after %s", cycles, s.idle/4, s.warmup)
	if err := live(ctx, p, s.warmup); err != nil { // The first polls have events.
		return logged{}, err
	}
	before := len(p.Log.String())
	if err := live(ctx, p, s.idle/4+2*time.Second); err != nil {
		return logged{}, err
	}
	return countLog(p.Log.String()[before:])
}

// countLog counts from the first tick that a log names to the last, or all of it where it names
// none. The summary of an hour is left out.
func countLog(log string) (total logged, err error) {
	var open logged // since the last tick
	for line := range strings.Lines(log) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			return total, fmt.Errorf("read a line of the log: %w", err)
		}
		message, _ := record["msg"].(string)
		switch message {
		case "Polling summary":
			continue
		case "Starting scheduled polling cycle for all observer types":
			total = logged{total.ticks + open.ticks, total.lines + open.ticks*open.lines, total.words + open.ticks*open.words}
			open = logged{ticks: 1}
		}
		open.lines++
		open.words += float64(len(record) - 1 + len(strings.Fields(message)))
	}
	if open.ticks == 0 {
		return open, nil
	}
	return total, nil
}

// shopConfig makes a table of one row, which each type polls.
func shopConfig(ctx context.Context, folder string) (c daemon.Config, err error) {
	shop := filepath.Join(folder, "shop.db")
	db, err := sql.Open("sqlite", "file:"+shop)
	if err != nil {
		return c, err
	}
	_, err = db.ExecContext(ctx, `CREATE TABLE stock (sku TEXT PRIMARY KEY NOT NULL, updated_at TEXT NOT NULL); INSERT INTO stock VALUES ('a', '2026-01-01 00:00:00')`)
	if err := errors.Join(err, db.Close()); err != nil {
		return c, err
	}
	c = daemon.Config{
		Node: "words", Database: "sqlite:" + filepath.Join(folder, "observerd.db"), Sources: map[string]string{"shop": "sqlite:" + shop},
		Files: map[string]string{"file": filepath.Join(folder, "events.jsonl")}, LogLevel: "info",
	}
	for n := range quietTypes {
		c.Observers = append(c.Observers, fmt.Sprintf("{id: stock-%d, type: stock-%d, source: shop, table: stock, key: sku, timestamp: updated_at}", n, n))
	}
	return c, nil
}
