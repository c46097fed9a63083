package torture

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
)

// operator is the folder of somebody who is at no node.
const operator = "operator"

// hireOperator writes an operator's configuration and migrates the database
// with it.
func (c *cluster) hireOperator(ctx context.Context) error {
	address := ""
	if c.coordination != nil {
		address = c.coordination.address()
	}
	database, err := c.database(address, operator)
	if err != nil {
		return err
	}
	if err := c.config(operator, database, c.source.url()).Write(filepath.Join(c.options.Dir, operator)); err != nil {
		return err
	}
	return c.operate(ctx, "migrate", "up")
}

// operate runs a command of the operator.
func (c *cluster) operate(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var said bytes.Buffer
	err := daemon.Run(ctx, daemon.Options{
		Binary: c.options.Binary, Name: operator, Folder: filepath.Join(c.options.Dir, operator), Args: args, Stdout: &said,
	})
	c.canary.hear(inCommands, strings.Join(args, " "), said.Bytes())
	return err
}
