package torture

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/workload"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// canary reads what is told of a run and keeps each line that holds the mark of the
// rows and of the passwords.
type canary struct {
	mu sync.Mutex
	// read is how many lines there were, by the kind of place.
	read  map[string]int
	found []history.Disclosure
}

// The kinds of places.
const (
	inLogs     = "logs"
	onPages    = "pages"
	inCommands = "commands"
	inHistory  = "history"
)

func (c *canary) hear(kind, where string, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read == nil {
		c.read = make(map[string]int)
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if bytes.Contains(line, []byte(workload.Mark)) {
			c.found = append(c.found, history.Disclosure{Where: fmt.Sprintf("%s:%d", where, number), Text: strings.TrimSpace(string(line))})
		}
	}
	c.read[kind] += number
}

// told returns what was found. An error says that nothing of some kind was read.
func (c *canary) told() ([]history.Disclosure, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range []string{inLogs, onPages, inCommands, inHistory} {
		if c.read[kind] == 0 {
			return nil, fmt.Errorf("look for what must not be told: the %s have no line", kind)
		}
	}
	return c.found, nil
}

// pages are those of which one is read each second.
var pages = []string{"/", "/metrics", "/readyz", "/healthz"}

// read reads a page of the process, where it answers.
func (n *node) read(ctx context.Context, p *daemon.Process, page string) {
	if _, text, err := p.Get(ctx, page); err == nil {
		n.cluster.canary.hear(onPages, fmt.Sprintf("page %s of %s", page, n.name), text)
	}
}

// listen reads what was told without a listener: logs, the state of the cluster as
// commands print it, and what the coordination database keeps of polls and operators.
func (c *cluster) listen(ctx context.Context) ([]history.Disclosure, error) {
	logs, err := filepath.Glob(filepath.Join(c.options.Dir, "*", "*.log"))
	if err != nil {
		return nil, fmt.Errorf("look for logs: %w", err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("look into a log: %w", err)
		}
		where, err := filepath.Rel(c.options.Dir, path)
		if err != nil {
			return nil, fmt.Errorf("look into a log: %w", err)
		}
		c.canary.hear(inLogs, where, text)
	}
	for _, args := range [][]string{{"status"}, {"status", "-o", "json"}, {"observers", "list"}, {"migrate", "status"}} {
		if err := c.operate(ctx, args...); err != nil {
			return nil, err
		}
	}
	for _, table := range []string{"obs_audit", "obs_poll"} {
		if err := c.listenTo(ctx, table, "SELECT * FROM "+table); err != nil {
			return nil, err
		}
	}
	if err := c.listenTo(ctx, "obs_cursor", "SELECT stream, last_error, refusal, accepted FROM obs_cursor"); err != nil {
		return nil, err
	}
	return c.canary.told()
}

// listenTo reads the rows of a statement, each as a line.
func (c *cluster) listenTo(ctx context.Context, where, statement string) error {
	rows, err := c.ledger.QueryContext(ctx, statement)
	if err != nil {
		return fmt.Errorf("look into %s: %w", where, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return fmt.Errorf("look into %s: %w", where, err)
	}
	cells, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range cells {
		targets[i] = &cells[i]
	}
	var text bytes.Buffer
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return fmt.Errorf("look into %s: %w", where, err)
		}
		fmt.Fprintf(&text, "%+v\n", cells)
	}
	c.canary.hear(inHistory, where, text.Bytes())
	return errors.Join(rows.Err(), rows.Close())
}
