package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// rowLimit is how many rows a command lists.
type rowLimit int

// limitFlag gives a command the flag --limit.
func limitFlag(cmd *cobra.Command) *rowLimit {
	limit := rowLimit(100)
	cmd.Flags().Var(&limit, "limit", "the most that are listed; 0 means all")
	return &limit
}

// Set implements pflag.Value.
func (l *rowLimit) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("write a number from 0, which means all")
	}
	*l = rowLimit(n)
	return nil
}

// String implements pflag.Value.
func (l *rowLimit) String() string { return strconv.Itoa(int(*l)) }

// Type implements pflag.Value.
func (l *rowLimit) Type() string { return "number" }

// query is what is asked of the database: one more, to see that there are more.
func (l *rowLimit) query() int {
	if *l == 0 {
		return 0
	}
	return int(*l) + 1
}

// limited returns the rows that are listed, and says on stderr that there are more.
func limited[T any](c *cli, limit rowLimit, rows []T) []T {
	if limit == 0 || len(rows) <= int(limit) {
		return rows
	}
	fmt.Fprintf(c.stderr, "observerd: there are more than %d; --limit 0 lists all\n", limit)
	return rows[:limit]
}
